/* What one part of a mesh holds of a set, and whom it sends how many rows:
 *
 *     part FILE.parts.h5 PARTS PART SET
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
    if (argc != 5)
        return refuse("give FILE.parts.h5, the number of parts, a part, and a set");
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
    mp_close_part(part);
    return 0;
}
