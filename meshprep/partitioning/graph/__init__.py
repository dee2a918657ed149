"""Parts of a graph with few cut edges, by the multilevel scheme of [KK98].

Vertices grow into clusters, which become the vertices of a smaller graph
(:mod:`coarsening`). A small graph is bisected recursively (:mod:`bisection`), and on every
level local searches of [FM82] and [SS11] move vertices between parts (:mod:`refinement`).

[KK98] Karypis, Kumar: Multilevel k-way partitioning scheme for irregular graphs, 1998.
[FM82] Fiduccia, Mattheyses: A linear-time heuristic for improving network partitions, 1982.
[SS11] Sanders, Schulz: Engineering multilevel graph partitioning algorithms, 2011.
"""
