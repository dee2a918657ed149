/* The stiffness matrix of linear triangles, assembled in the blocks of a plan, on all cores.
 *
 *     stiffness PLAN NODES [VALUES]
 *
 * NODES holds the coordinates of the nodes as doubles, x and y of each, in the order of the input
 * mesh. Prints rows, nonzeros and the sums of all values and of the diagonal; VALUES receives the
 * values, row after row in the order of the plan. The plan must have a loop "stiffness" over cells
 * that reads through cells->nodes and adds to a matrix "K".
 */
#define MESHPREP_PLAN_IMPLEMENTATION
#include "meshprep_plan.h"

#define LOOP "stiffness"
#define MATRIX "K"
#define MAP "cells->nodes"

/* The matrix of one triangle, row after row. */
static void stiffness(const double *a, const double *b, const double *c, double *k)
{
    double bx = b[0] - a[0], by = b[1] - a[1], cx = c[0] - a[0], cy = c[1] - a[1];
    double det = bx * cy - by * cx, half = 0.5 * (det < 0 ? -det : det);
    double gx[3] = {(by - cy) / det, cy / det, -by / det};
    double gy[3] = {(cx - bx) / det, -cx / det, bx / det};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            k[3 * i + j] = half * (gx[i] * gx[j] + gy[i] * gy[j]);
}

static void assemble(const mp_loop *loop, const mp_map *map, const mp_places *place, const double *x,
                     double *values)
{
    /* Blocks of one colour share no row, so that they may run at once without atomics. */
    for (int64_t colour = 0; colour < loop->n_block_colours; colour++) {
        int64_t first = loop->block_colour_offset[colour];
        int64_t stop = loop->block_colour_offset[colour + 1];
#pragma omp parallel for schedule(dynamic)
        for (int64_t n = first; n < stop; n++) {
            int32_t b = loop->block_order[n];
            for (int64_t p = loop->block_offset[b]; p < loop->block_offset[b + 1]; p++) {
                int64_t e = mp_element(loop, p);
                const int32_t *node = map->table + 3 * e, *at = place->table + 9 * e;
                double k[9];
                stiffness(x + 2 * node[0], x + 2 * node[1], x + 2 * node[2], k);
                /* Constrained rows and columns have no place. */
                for (int i = 0; i < 9; i++)
                    if (at[i] >= 0)
                        values[at[i]] += k[i];
            }
        }
    }
}

/* The coordinates in the order of the plan. */
static double *read_nodes(const char *path, const mp_set *nodes, char *error)
{
    size_t n = (size_t)nodes->size, bytes = 2 * sizeof(double);
    double *old_x = (double *)malloc(n * bytes + 1), *x = (double *)malloc(n * bytes + 1);
    FILE *file = fopen(path, "rb");
    int whole = old_x && x && file && fread(old_x, bytes, n, file) == n && fgetc(file) == EOF;
    if (file)
        fclose(file);
    if (whole)
        mp_apply(nodes, old_x, x, bytes);
    free(old_x);
    if (!whole) {
        free(x);
        mp_say(error, path, "does not hold two doubles a node");
        return NULL;
    }
    return x;
}

static void print_sums(const mp_matrix *matrix, const double *values)
{
    double sum = 0.0, diagonal = 0.0;
    for (int64_t i = 0; i < matrix->n_rows; i++)
        for (int64_t j = matrix->row_ptr[i]; j < matrix->row_ptr[i + 1]; j++) {
            sum += values[j];
            diagonal += matrix->columns[j] == i ? values[j] : 0.0;
        }
    printf("rows %lld nonzeros %lld sum %.17g diagonal %.17g\n", (long long)matrix->n_rows,
           (long long)matrix->n_nonzeros, sum, diagonal);
}

static int write_values(const char *path, const mp_matrix *matrix, const double *values, char *error)
{
    size_t n = (size_t)matrix->n_nonzeros;
    FILE *file = fopen(path, "wb");
    int failed = !file || fwrite(values, sizeof *values, n, file) != n;
    failed |= file && fclose(file) != 0;
    if (failed)
        mp_say(error, path, "cannot be written");
    return failed;
}

static int run(mp_plan *plan, const char *coordinates, const char *result, char *error)
{
    mp_set *nodes = mp_read_set(plan, "nodes", error);
    mp_map *map = nodes ? mp_read_map(plan, MAP, error) : NULL;
    mp_loop *loop = map ? mp_read_loop(plan, LOOP, NULL, error) : NULL;
    mp_matrix *matrix = loop ? mp_read_matrix(plan, MATRIX, error) : NULL;
    mp_places *place = matrix ? mp_read_places(plan, MATRIX, LOOP, error) : NULL;
    double *x = place ? read_nodes(coordinates, nodes, error) : NULL;
    double *values = x ? (double *)calloc((size_t)matrix->n_nonzeros + 1, sizeof *values) : NULL;
    int failed = values == NULL;
    if (!failed && (map->arity != 3 || place->entries != 9 || map->to_size != nodes->size ||
                    map->size != loop->size || place->size != loop->size)) {
        mp_say(error, LOOP, "is not of triangles with three dofs");
        failed = 1;
    }
    if (!failed) {
        assemble(loop, map, place, x, values);
        print_sums(matrix, values);
        failed = result && write_values(result, matrix, values, error);
    }
    free(values);
    free(x);
    mp_free_places(place);
    mp_free_matrix(matrix);
    mp_free_loop(loop);
    mp_free_map(map);
    mp_free_set(nodes);
    return failed;
}

int main(int argc, char **argv)
{
    char error[MP_ERROR] = "";
    if (argc < 3) {
        fprintf(stderr, "usage: stiffness PLAN NODES [VALUES]\n");
        return 2;
    }
    mp_plan *plan = mp_open(argv[1], error);
    int failed = plan == NULL || run(plan, argv[2], argc > 3 ? argv[3] : NULL, error);
    if (failed)
        fprintf(stderr, "stiffness: error: %s\n", error);
    mp_close(plan);
    return failed ? 2 : 0;
}
