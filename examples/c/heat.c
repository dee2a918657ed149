/* Heat flows over edges between cells, in the blocks of a plan, on all cores.
 *
 *     heat PLAN STEPS [RESULT]
 *
 * Prints the sum and the peak; RESULT receives the temperatures as doubles, in the order of the
 * input mesh. The plan must have a loop "flux" over edges that adds to their cells.
 */
#define MESHPREP_PLAN_IMPLEMENTATION
#include "meshprep_plan.h"

#define LOOP "flux"
#define MAP "edges->cells"
#define RATE 0.125

/* What one edge does: each cell takes up the difference to the other. */
static void flux(double t1, double t2, double *r1, double *r2)
{
    double f = t2 - t1;
    *r1 += f;
    *r2 -= f;
}

static void step(const mp_loop *loop, const mp_map *map, int64_t cells, double *t, double *r)
{
    /* Blocks of one colour share no cell, so that they may run at once without atomics. */
    for (int64_t colour = 0; colour < loop->n_block_colours; colour++) {
        int64_t first = loop->block_colour_offset[colour];
        int64_t stop = loop->block_colour_offset[colour + 1];
#pragma omp parallel for schedule(dynamic)
        for (int64_t k = first; k < stop; k++) {
            int32_t b = loop->block_order[k];
            for (int64_t p = loop->block_offset[b]; p < loop->block_offset[b + 1]; p++) {
                int64_t e = mp_element(loop, p);
                int32_t c1 = map->table[2 * e], c2 = map->table[2 * e + 1];
                flux(t[c1], t[c2], &r[c1], &r[c2]);
            }
        }
    }
#pragma omp parallel for
    for (int64_t c = 0; c < cells; c++) {
        t[c] += RATE * r[c];
        r[c] = 0.0;
    }
}

static int run(mp_plan *plan, long steps, const char *result, char *error)
{
    mp_set *cells = mp_read_set(plan, "cells", error);
    mp_map *map = cells ? mp_read_map(plan, MAP, error) : NULL;
    mp_loop *loop = map ? mp_read_loop(plan, LOOP, NULL, error) : NULL;
    int failed = loop == NULL;
    if (!failed && (map->arity != 2 || map->size != loop->size || map->to_size != cells->size)) {
        mp_say(error, LOOP, "is not over edges between two cells");
        failed = 1;
    }
    if (!failed) {
        size_t n = (size_t)cells->size;
        double *old_t = (double *)malloc(n * sizeof *old_t);
        double *t = (double *)malloc(n * sizeof *t);
        double *r = (double *)calloc(n, sizeof *r);
        double sum = 0.0, peak = 0.0;
        /* Values in the order of the input mesh, then in the plan's. */
        for (size_t i = 0; i < n; i++)
            old_t[i] = (double)(i * 37 % 101);
        mp_apply(cells, old_t, t, sizeof *t);
        for (long s = 0; s < steps; s++)
            step(loop, map, cells->size, t, r);
        mp_restore(cells, t, old_t, sizeof *t);
        for (size_t i = 0; i < n; i++) {
            sum += old_t[i];
            peak = old_t[i] > peak ? old_t[i] : peak;
        }
        printf("sum %.17g peak %.17g\n", sum, peak);
        FILE *file = result ? fopen(result, "wb") : NULL;
        failed = result && (!file || fwrite(old_t, sizeof *old_t, n, file) != n);
        failed |= file && fclose(file) != 0;
        if (failed)
            mp_say(error, result, "cannot be written");
        free(old_t);
        free(t);
        free(r);
    }
    mp_free_set(cells);
    mp_free_map(map);
    mp_free_loop(loop);
    return failed;
}

int main(int argc, char **argv)
{
    char error[MP_ERROR] = "";
    if (argc < 3) {
        fprintf(stderr, "usage: heat PLAN STEPS [RESULT]\n");
        return 2;
    }
    mp_plan *plan = mp_open(argv[1], error);
    long steps = strtol(argv[2], NULL, 10);
    int failed = plan == NULL || run(plan, steps, argc > 3 ? argv[3] : NULL, error);
    if (failed)
        fprintf(stderr, "heat: error: %s\n", error);
    mp_close(plan);
    return failed ? 2 : 0;
}
