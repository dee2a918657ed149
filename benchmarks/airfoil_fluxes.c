/* The twin of airfoil_fluxes.f90 in C: the same edges, one turn after the other, on one thread. */
#define MESHPREP_PLAN_IMPLEMENTATION
#include "airfoil.c"
#include "meshprep_plan.h"

static mp_map *nodes, *cells;
static mp_loop *blocks;
static mp_ranges *ranges;

/* 1 where the plan has been read; else 0, and a reason. */
int start_in_c(const char *path, char *error) {
  mp_plan *plan = mp_open(path, error);
  if (plan == NULL || (nodes = mp_read_map(plan, "edges->nodes", error)) == NULL ||
      (cells = mp_read_map(plan, "edges->cells", error)) == NULL ||
      (blocks = mp_read_loop(plan, "res_calc", NULL, error)) == NULL ||
      (ranges = mp_read_ranges(plan, "res_calc", error)) == NULL)
    return 0;
  mp_close(plan);
  return 1;
}

void fluxes_in_c(const double *x, const double *q, const double *adt, double *res) {
  for (int64_t turn = 0; turn < ranges->n_ranges; turn++) {
    const int64_t r = ranges->order[turn];
    const int64_t first = ranges->offset[r], n = ranges->offset[r + 1] - first;
    if (blocks->elements == NULL) {
      res_calc(n, nodes->table + 2 * first, cells->table + 2 * first, x, q, adt, res);
      continue;
    }
    for (int64_t place = first; place < first + n; place++) {
      const int64_t e = blocks->elements[place];
      res_calc(1, nodes->table + 2 * e, cells->table + 2 * e, x, q, adt, res);
    }
  }
}
