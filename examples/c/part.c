/* What one part of a mesh holds of a set, whom it sends how many rows, where its elements lie, and
 * which are in a group:
 *
 *     part FILE.parts.h5 PARTS PART SET [GROUP]
 */
#define MESHPREP_PLAN_IMPLEMENTATION
#define MESHPREP_PARTS_IMPLEMENTATION
#include "meshprep_parts.h"

static int refuse(const char *error)
{
    fprintf(stderr, "error: %s\n", error);
    return 2;
}

int main(int argc, char **argv)
{
    char error[MP_ERROR];
    const char *kinds[] = {"send_exec", "send_halo", "receive_exec", "receive_halo"};
    if (argc != 5 && argc != 6)
        return refuse("give FILE.parts.h5, the number of parts, a part, a set, and maybe a group");
    mp_part *part = mp_open_part(argv[1], atoll(argv[2]), atoll(argv[3]), error);
    if (part == NULL)
        return refuse(error);
    mp_runs runs;
    if (!mp_part_runs(part, argv[4], &runs, error))
        return refuse(error);
    printf("first %lld core %lld owned %lld exec %lld halo %lld\n", (long long)runs.first,
           (long long)runs.core, (long long)runs.owned, (long long)runs.exec, (long long)runs.halo);
    for (int k = 0; k < 4; k++) {
        mp_messages m;
        if (!mp_part_messages(part, argv[4], kinds[k], &m, error))
            return refuse(error);
        for (int64_t i = 0; i < m.neighbours; i++) {
            long long sum = 0;
            for (int64_t j = m.offset[i]; j < m.offset[i + 1]; j++)
                sum += m.rows == NULL ? j : m.rows[j];
            printf("%s %d rows %lld sum %lld\n", kinds[k], (int)m.parts[i],
                   (long long)(m.offset[i + 1] - m.offset[i]), sum);
        }
    }
    int64_t dim, number, n, rows = runs.owned + runs.exec + runs.halo;
    const double *x = mp_part_coordinates(part, argv[4], &dim, error);
    for (int64_t i = 0; x != NULL && i < rows; i += rows > 1 ? rows - 1 : 1)
        printf("element %lld at %.17g %.17g\n", (long long)i, x[i * dim], x[i * dim + 1]);
    if (argc == 6) {
        if (!mp_part_group(part, argv[4], "physical", argv[5], &number, error))
            return refuse(error);
        int64_t *members = mp_part_members(part, argv[4], "physical", number, &n, error);
        if (members == NULL)
            return refuse(error);
        printf("group %lld:", (long long)number);
        for (int64_t i = 0; i < n; i++)
            printf(" %lld", (long long)members[i]);
        printf("\n");
        free(members);
    }
    mp_close_part(part);
    return 0;
}
