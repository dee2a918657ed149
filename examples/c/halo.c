/* Brings the copies of a set up to date by MPI, and compares them with what the file says of them:
 *
 *     mpiexec -n PARTS halo FILE.parts.h5 SET
 */
#define MESHPREP_PLAN_IMPLEMENTATION
#define MESHPREP_PARTS_IMPLEMENTATION
#include "meshprep_parts.h"
#include <mpi.h>

static const char *RUNS[] = {"exec", "halo"};

/* Sends and receives rows of `dim` doubles for one of RUNS, whose elements begin at row `begin`. */
static int exchange(const mp_part *part, const char *set, int run, int64_t begin, double *values,
                    int dim, char *error)
{
    char kind[2][32];
    mp_messages out, in;
    snprintf(kind[0], sizeof kind[0], "send_%s", RUNS[run]);
    snprintf(kind[1], sizeof kind[1], "receive_%s", RUNS[run]);
    if (!mp_part_messages(part, set, kind[0], &out, error) ||
        !mp_part_messages(part, set, kind[1], &in, error))
        return 0;
    int64_t sent = out.offset[out.neighbours];
    int n = 0;
    double *packed = (double *)malloc((size_t)(sent * dim + 1) * sizeof *packed);
    MPI_Request *wait =
        (MPI_Request *)malloc((size_t)(out.neighbours + in.neighbours + 1) * sizeof *wait);
    for (int64_t i = 0; i < in.neighbours; i++)
        MPI_Irecv(values + dim * (begin + in.offset[i]),
                  dim * (int)(in.offset[i + 1] - in.offset[i]), MPI_DOUBLE, in.parts[i], run,
                  MPI_COMM_WORLD, &wait[n++]);
    for (int64_t j = 0; j < sent; j++)
        memcpy(packed + dim * j, values + dim * out.rows[j], (size_t)dim * sizeof *packed);
    for (int64_t i = 0; i < out.neighbours; i++)
        MPI_Isend(packed + dim * out.offset[i], dim * (int)(out.offset[i + 1] - out.offset[i]),
                  MPI_DOUBLE, out.parts[i], run, MPI_COMM_WORLD, &wait[n++]);
    /* Core elements need none of these rows: a solver computes them here. */
    MPI_Waitall(n, wait, MPI_STATUSES_IGNORE);
    free(packed);
    free(wait);
    return 1;
}

/* How many copies hold something else than their number in the whole mesh and its half; or -1. */
static int64_t wrong_copies(const mp_part *part, const char *set, char *error)
{
    char name[MP_NAME];
    mp_runs runs;
    int64_t n = 0, wrong = 0;
    snprintf(name, sizeof name, "sets/%.900s/copies", set);
    const int64_t *number = (const int64_t *)mp_part_array(part, name, 8, &n, error);
    if (number == NULL || !mp_part_runs(part, set, &runs, error))
        return -1;
    double *values = (double *)calloc((size_t)(2 * (runs.owned + n) + 1), sizeof *values);
    for (int64_t i = 0; i < runs.owned; i++) {
        values[2 * i] = (double)(runs.first + i);
        values[2 * i + 1] = 0.5 * values[2 * i];
    }
    if (!exchange(part, set, 0, runs.owned, values, 2, error) ||
        !exchange(part, set, 1, runs.owned + runs.exec, values, 2, error))
        wrong = -1;
    for (int64_t i = 0; wrong >= 0 && i < n; i++) {
        const double *row = values + 2 * (runs.owned + i);
        wrong += row[0] != (double)number[i] || row[1] != 0.5 * row[0];
    }
    free(values);
    return wrong;
}

int main(int argc, char **argv)
{
    char error[MP_ERROR] = "give FILE.parts.h5 and a set";
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    mp_part *part = argc == 3 ? mp_open_part(argv[1], ranks, rank, error) : NULL;
    int opened = part != NULL;
    MPI_Allreduce(MPI_IN_PLACE, &opened, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (!opened) { /* all end together, so that no message is lost */
        if (!part)
            fprintf(stderr, "error: %s\n", error);
        mp_close_part(part);
        MPI_Finalize();
        return 2;
    }
    int64_t wrong = wrong_copies(part, argv[2], error);
    if (wrong < 0) {
        fprintf(stderr, "error: %s\n", error);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Reduce(rank ? &wrong : MPI_IN_PLACE, &wrong, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks: %lld copies are wrong\n", ranks, (long long)wrong);
    mp_close_part(part);
    MPI_Finalize();
    return 0;
}
