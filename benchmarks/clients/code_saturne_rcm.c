/* Switches on code_saturne's reverse Cuthill-McKee for cells, which it has but does not use. */

#include <stdbool.h>

/* The values that cs_renumber.h of version 6.0 gives these names. */
enum {
    ADJACENT_LOW = 0,
    CELLS_RCM = 6,
    CELLS_NONE = 7,
    FACES_SIMD = 2,
    BORDER_SIMD = 1,
    VERTICES_NONE = 2
};

void cs_renumber_set_algorithm(
    bool cells_of_other_ranks_last,
    bool faces_of_other_ranks_last,
    int face_order,
    int cells_first,
    int cells,
    int inner_faces,
    int border_faces,
    int vertices);

void cs_user_numbering(void)
{
    cs_renumber_set_algorithm(
        false,
        false,
        ADJACENT_LOW,
        CELLS_NONE,
        CELLS_RCM,
        FACES_SIMD,
        BORDER_SIMD,
        VERTICES_NONE);
}
