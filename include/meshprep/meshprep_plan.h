/* Reads a meshprep plan (docs/plan-format.md, versions 1 to 4) in C99 or C++11, over libhdf5 from 1.8 on.
 *
 * In one source file of the program:
 *
 *     #define MESHPREP_PLAN_IMPLEMENTATION
 *     #include "meshprep_plan.h"
 *
 * Every function that can fail returns NULL and says why in `error`, MP_ERROR bytes that the caller
 * provides. A plan that is damaged, foreign or of another version is refused before HDF5 reads it.
 * The seal shows no intent: whoever changes a file can seal it anew. So what is read is checked, too:
 * offsets ascend from 0 to the length of what they cut, indices are inside their sets, and arrays
 * are as long as their sets, so that no loop over them leaves its memory. O(n), once. That the
 * blocks are free of races is for `meshprep check` to prove.
 */
#ifndef MESHPREP_PLAN_H
#define MESHPREP_PLAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MP_ERROR 256
#define MP_NEWEST_VERSION 4

typedef struct mp_plan mp_plan;

/* A set and its two permutations: new_to_old[i] is the old number of what is number i now. */
typedef struct {
    int64_t size;
    int32_t *new_to_old, *old_to_new;
} mp_set;

/* A map in the new numbering: element e reaches the `arity` elements from table[e * arity] on, of a
 * set of `to_size`. */
typedef struct {
    int64_t size, arity, to_size;
    int32_t *table;
} mp_map;

/* A loop cut into blocks. Block b owns the places block_offset[b] .. block_offset[b + 1] - 1; place
 * p holds element elements[p], or element p where elements is NULL: mp_element() says which. The
 * blocks of colour c are block_order[block_colour_offset[c]] .. block_order[block_colour_offset[c +
 * 1] - 1]: they may run at once, and colours one after the other. */
typedef struct {
    int64_t size, block_size, n_blocks, n_block_colours;
    int64_t *block_offset, *block_colour_offset;
    int32_t *block_order;
    uint16_t *thread_colour;  /* of the element at each place inside its block */
    int32_t *thread_colours;  /* of each block */
    int32_t *elements;        /* NULL where blocks are ranges of the set's numbering */
} mp_loop;

/* A loop cut into ranges for the threads of a CPU. Range r holds the places offset[r] .. offset[r + 1]
 * - 1 of the loop's default variant. At turn i, order[i] is the range to be begun, when those of the
 * turns waits[wait_offset[i]] .. waits[wait_offset[i + 1] - 1] are done, which are all lower than i. */
typedef struct {
    int64_t n_ranges;
    int64_t *offset, *wait_offset;
    int32_t *order, *waits;
} mp_ranges;

/* The distinct elements of a set that each block of a loop touches, for GPU thread blocks. */
typedef struct {
    int64_t n_blocks, loads;
    int64_t *point_offset;
    int32_t *points;
    uint8_t *exclusive;
} mp_staging;

/* A matrix that loops add to, in compressed rows: row i has the nonzeros row_ptr[i] .. row_ptr[i + 1]
 * - 1, whose columns ascend. row_of[e] and column_of[e] are the row and column of element e of the
 * sets whose elements have them, or -1 for a constrained one. */
typedef struct {
    int64_t n_rows, n_nonzeros, row_set_size, column_set_size;
    int64_t *row_ptr;
    int32_t *columns, *row_of, *column_of;
} mp_matrix;

/* Where a loop adds: entry k of the matrix of element e, row after row, to the nonzero table[e *
 * entries + k], or nowhere where that is -1. */
typedef struct {
    int64_t size, entries;
    int32_t *table;
} mp_places;

mp_plan *mp_open(const char *path, char *error);
void mp_close(mp_plan *plan);

/* `variant` is "s256" or the like, NULL for the default of the plan. */
mp_set *mp_read_set(mp_plan *plan, const char *name, char *error);
mp_map *mp_read_map(mp_plan *plan, const char *name, char *error);
/* The coordinates of each element, `dim` of them, 2 or 3; a plan has some where they were asked for.
 * free() them. */
double *mp_read_coordinates(mp_plan *plan, const char *set, int64_t *size, int64_t *dim,
                            char *error);
/* The group number of each element of a derived set, 0 where it has none, the first where it has
 * several, such as the "physical" of "boundary_edges"; `size` receives how many. free() them. */
int64_t *mp_read_tag(mp_plan *plan, const char *set, const char *tag, int64_t *size, char *error);
/* The number of the group `name`, such as "wall", in that tag; 0 and a reason where no group or
 * several have this name. */
int mp_read_group(mp_plan *plan, const char *set, const char *tag, const char *name,
                  int64_t *number, char *error);
/* The elements of a group, ascending, also those in other groups, too; `size` receives how many.
 * free() them. */
int64_t *mp_read_members(mp_plan *plan, const char *set, const char *tag, int64_t group,
                         int64_t *size, char *error);
/* A text attribute of an object, such as "arguments" of the loop "flux" in "loops"; free() it. */
char *mp_read_text(mp_plan *plan, const char *group, const char *name, const char *attribute,
                   char *error);
mp_loop *mp_read_loop(mp_plan *plan, const char *name, const char *variant, char *error);
/* 1 where the loop has ranges, as in plans from version 4 on; blocks of others run by colours. */
int mp_has_ranges(mp_plan *plan, const char *loop);
mp_ranges *mp_read_ranges(mp_plan *plan, const char *loop, char *error);
mp_staging *mp_read_staging(mp_plan *plan, const char *loop, const char *variant, const char *set,
                            char *error);
/* The map as positions in the staging lists, place by place: (arity, size of the loop's set). */
uint16_t *mp_read_local(mp_plan *plan, const char *loop, const char *variant, const char *map,
                        char *error);

mp_matrix *mp_read_matrix(mp_plan *plan, const char *name, char *error);
mp_places *mp_read_places(mp_plan *plan, const char *matrix, const char *loop, char *error);

void mp_free_set(mp_set *set);
void mp_free_map(mp_map *map);
void mp_free_loop(mp_loop *loop);
void mp_free_ranges(mp_ranges *ranges);
void mp_free_staging(mp_staging *staging);
void mp_free_matrix(mp_matrix *matrix);
void mp_free_places(mp_places *place);

/* The element at a place of a loop's blocks. */
static inline int64_t mp_element(const mp_loop *loop, int64_t place)
{
    return loop->elements == NULL ? place : loop->elements[place];
}

/* Rows of `bytes` each, from the order of the input mesh to that of the plan, and back. */
void mp_apply(const mp_set *set, const void *old_values, void *new_values, size_t bytes);
void mp_restore(const mp_set *set, const void *new_values, void *old_values, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* MESHPREP_PLAN_H */

#if defined(MESHPREP_PLAN_IMPLEMENTATION) && !defined(MESHPREP_PLAN_IMPLEMENTED)
#define MESHPREP_PLAN_IMPLEMENTED

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MP_SEAL 512
#define MP_NAME 1024

struct mp_plan {
    hid_t file;
};

/* ---- the seal: SHA-256 (FIPS 180-4) of everything behind it ---- */

typedef struct {
    uint32_t h[8];
    uint8_t block[64];
    size_t used;
    uint64_t total;
} mp_sha;

static const uint32_t MP_K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t mp_turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void mp_sha_block(uint32_t *h, const uint8_t *data)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)data[4 * i] << 24 | (uint32_t)data[4 * i + 1] << 16 |
               (uint32_t)data[4 * i + 2] << 8 | (uint32_t)data[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (mp_turn(a, 7) ^ mp_turn(a, 18) ^ a >> 3) + w[i - 7] +
               (mp_turn(b, 17) ^ mp_turn(b, 19) ^ b >> 10);
    }
    memcpy(v, h, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t e = v[4], a = v[0];
        uint32_t one = v[7] + (mp_turn(e, 6) ^ mp_turn(e, 11) ^ mp_turn(e, 25)) +
                       ((e & v[5]) ^ (~e & v[6])) + MP_K[i] + w[i];
        uint32_t two = (mp_turn(a, 2) ^ mp_turn(a, 13) ^ mp_turn(a, 22)) +
                       ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += one;
        v[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        h[i] += v[i];
}

static void mp_sha_add(mp_sha *s, const uint8_t *data, size_t n)
{
    s->total += n;
    while (n > 0) {
        size_t room = sizeof s->block - s->used, take = n < room ? n : room;
        memcpy(s->block + s->used, data, take);
        s->used += take;
        data += take;
        n -= take;
        if (s->used == sizeof s->block) {
            mp_sha_block(s->h, s->block);
            s->used = 0;
        }
    }
}

static void mp_sha_text(mp_sha *s, char *text)
{
    uint64_t bits = s->total * 8;
    uint8_t end[72] = {0x80};
    size_t zeros = (s->used < 56 ? 56 : 120) - s->used;
    for (int i = 0; i < 8; i++)
        end[zeros + i] = (uint8_t)(bits >> (56 - 8 * i));
    mp_sha_add(s, end, zeros + 8);
    for (int i = 0; i < 8; i++)
        snprintf(text + 8 * i, 9, "%08x", (unsigned)s->h[i]);
}

static void mp_say(char *error, const char *path, const char *what)
{
    snprintf(error, MP_ERROR, "%.120s: %.120s", path, what);
}

static int mp_check_seal(FILE *file, const char *path, char *error)
{
    mp_sha sha = {{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                   0x1f83d9ab, 0x5be0cd19}, {0}, 0, 0};
    char seal[MP_SEAL] = {0}, expected[MP_SEAL] = {0}, digest[65], begin[32];
    uint8_t *piece = (uint8_t *)malloc(1 << 20);
    size_t n;
    if (piece == NULL || fread(seal, 1, MP_SEAL, file) != MP_SEAL ||
        strncmp(seal, "meshprep-plan ", 14) != 0) {
        free(piece);
        return mp_say(error, path, "no plan: give a .plan.h5 file that meshprep wrote"), 0;
    }
    while ((n = fread(piece, 1, 1 << 20, file)) > 0)
        mp_sha_add(&sha, piece, n);
    free(piece);
    mp_sha_text(&sha, digest);
    int version = 0;
    do
        snprintf(begin, sizeof begin, "meshprep-plan %d\n", ++version);
    while (strncmp(seal, begin, strlen(begin)) != 0 && version <= MP_NEWEST_VERSION);
    if (version > MP_NEWEST_VERSION)
        return mp_say(error, path, "a plan of another version: make it anew"), 0;
    snprintf(expected, sizeof expected, "%ssha256 %s\n", begin, digest);
    if (memcmp(seal, expected, MP_SEAL) != 0)
        return mp_say(error, path, "damaged: its content does not match its checksum"), 0;
    return 1;
}

/* ---- HDF5 ---- */

mp_plan *mp_open(const char *path, char *error)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return mp_say(error, path, "cannot be read"), (mp_plan *)NULL;
    int whole = mp_check_seal(file, path, error);
    fclose(file);
    if (!whole)
        return NULL;
    mp_plan *plan = (mp_plan *)malloc(sizeof *plan);
    if (plan == NULL)
        return mp_say(error, path, "out of memory"), (mp_plan *)NULL;
    H5E_BEGIN_TRY {
        plan->file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    } H5E_END_TRY;
    if (plan->file < 0) {
        free(plan);
        return mp_say(error, path, "HDF5 cannot open it"), (mp_plan *)NULL;
    }
    return plan;
}

void mp_close(mp_plan *plan)
{
    if (plan != NULL) {
        H5Fclose(plan->file);
        free(plan);
    }
}

/* "/a/b/c"; parts that are NULL are left out. */
static int mp_path(char *path, const char *a, const char *b, const char *c, const char *d,
                   char *error)
{
    const char *parts[4] = {a, b, c, d};
    size_t used = 0;
    for (int i = 0; i < 4; i++) {
        size_t n = parts[i] ? strlen(parts[i]) : 0;
        if (used + n + 2 > MP_NAME)
            return mp_say(error, a, "a name in it is too long"), 0;
        if (parts[i] == NULL)
            continue;
        path[used++] = '/';
        memcpy(path + used, parts[i], n);
        used += n;
    }
    path[used] = 0;
    return 1;
}

/* Whether there is such an object, reached without links to elsewhere, which no plan has. */
static int mp_exists(mp_plan *plan, const char *path)
{
    char part[MP_NAME];
    int found = 1;
    H5E_BEGIN_TRY { /* HDF5 prints what it thinks of files that are made wrongly */
        for (const char *at = path; found && at != NULL;) {
            H5L_info_t link;
            at = strchr(at + 1, '/');
            snprintf(part, sizeof part, "%.*s", at == NULL ? MP_NAME : (int)(at - path), path);
            found = H5Lexists(plan->file, part, H5P_DEFAULT) > 0 &&
                    H5Lget_info(plan->file, part, &link, H5P_DEFAULT) >= 0 &&
                    link.type == H5L_TYPE_HARD;
        }
    } H5E_END_TRY;
    return found;
}

/* Whether a dataset is stored in one piece in this file, has `rank` dimensions and claims no more
 * bytes than the file has; the lengths go into `length`. */
static int mp_is_plain(mp_plan *plan, hid_t set, hid_t space, int rank, hsize_t *length)
{
    hsize_t bytes = 0;
    hid_t made = H5Dget_create_plist(set), stored = H5Dget_type(set);
    int plain = made >= 0 && stored >= 0 && H5Pget_layout(made) == H5D_CONTIGUOUS &&
                H5Pget_external_count(made) == 0 && H5Sget_simple_extent_ndims(space) == rank &&
                H5Sget_simple_extent_type(space) != H5S_NULL &&
                H5Sget_simple_extent_dims(space, length, NULL) == rank &&
                H5Fget_filesize(plan->file, &bytes) >= 0;
    size_t item = stored < 0 ? 0 : H5Tget_size(stored);
    int empty = 0;
    for (int i = 0; plain && i < rank; i++)
        empty = empty || length[i] == 0;
    bytes = item ? bytes / item : 0; /* items that are left */
    plain = plain && (empty || bytes > 0);
    for (int i = 0; plain && !empty && i < rank; i++) {
        plain = length[i] <= bytes;
        bytes /= length[i];
    }
    if (stored >= 0)
        H5Tclose(stored);
    if (made >= 0)
        H5Pclose(made);
    return plain;
}

/* Whether a dataset is stored as the numbers that plans have: of the same kind and size as in
 * memory, the first byte the lowest; thread colours, which have one dimension, also of one byte. */
static int mp_has_type(hid_t set, hid_t type, int rank)
{
    hid_t stored = H5Dget_type(set);
    H5T_class_t kind = H5Tget_class(type);
    size_t bytes = H5Tget_size(type), found = stored < 0 ? 0 : H5Tget_size(stored);
    int same = stored >= 0 && H5Tget_class(stored) == kind;
    if (same && kind == H5T_INTEGER)
        same = H5Tget_sign(stored) == H5Tget_sign(type);
    if (same && kind != H5T_STRING)
        same = (found == bytes || (rank == 1 && bytes == 2 && found == 1)) &&
               (found == 1 || H5Tget_order(stored) == H5T_ORDER_LE);
    if (stored >= 0)
        H5Tclose(stored);
    return same;
}

/* A dataset of `rank` dimensions into memory of its own; the lengths go into `shape`. */
static void *mp_read(mp_plan *plan, const char *path, hid_t type, int rank, int64_t *shape,
                     char *error)
{
    hsize_t length[2] = {1, 1};
    void *values = NULL;
    if (!mp_exists(plan, path))
        return mp_say(error, path, "is not in the plan"), (void *)NULL;
    H5E_BEGIN_TRY {
        hid_t set = H5Dopen2(plan->file, path, H5P_DEFAULT);
        hid_t space = set < 0 ? -1 : H5Dget_space(set);
        if (space >= 0 && mp_has_type(set, type, rank) && mp_is_plain(plan, set, space, rank, length)) {
            size_t n = (size_t)(length[0] * length[1]), bytes = H5Tget_size(type);
            values = n < SIZE_MAX / bytes ? calloc(n + 1, bytes) : NULL;
            if (values != NULL && n &&
                H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) {
                free(values);
                values = NULL;
            }
        }
        if (space >= 0)
            H5Sclose(space);
        if (set >= 0)
            H5Dclose(set);
    } H5E_END_TRY;
    if (values == NULL)
        mp_say(error, path, "cannot be read");
    shape[0] = values ? (int64_t)length[0] : 0;
    if (rank == 2)
        shape[1] = values ? (int64_t)length[1] : 0;
    return values;
}

/* A dataset as mp_read() gives it, of `rows` rows. */
static void *mp_read_rows(mp_plan *plan, const char *path, hid_t type, int rank, int64_t rows,
                          int64_t *columns, char *error)
{
    int64_t shape[2] = {0, 1};
    void *values = mp_read(plan, path, type, rank, shape, error);
    if (values != NULL && shape[0] != rows) {
        free(values);
        return mp_say(error, path, "has not one row for each element: make it anew"),
               (void *)NULL;
    }
    if (columns != NULL)
        *columns = shape[1];
    return values;
}

/* Whether all are from `least` to end - 1. */
static int mp_inside(const int32_t *values, int64_t n, int64_t least, int64_t end,
                     const char *path, char *error)
{
    char what[128];
    for (int64_t i = 0; i < n; i++)
        if (values[i] < least || values[i] >= end) {
            snprintf(what, sizeof what, "entry %lld is %lld, outside %lld..%lld: make it anew",
                     (long long)i, (long long)values[i], (long long)least, (long long)end - 1);
            return mp_say(error, path, what), 0;
        }
    return 1;
}

/* Whether these ascend from 0 to `end`. */
static int mp_is_offset(const int64_t *offset, int64_t n, int64_t end, const char *path,
                        char *error)
{
    int good = n > 0 && offset[0] == 0 && offset[n - 1] == end;
    for (int64_t i = 1; good && i < n; i++)
        good = offset[i - 1] <= offset[i];
    return good || (mp_say(error, path, "does not rise from 0 to the end: make it anew"), 0);
}

/* `rows` rows of indices of a set of `end`, or -1 where `least` is. */
static int32_t *mp_read_indices(mp_plan *plan, const char *path, int rank, int64_t rows,
                                int64_t least, int64_t end, int64_t *columns, char *error)
{
    int64_t width = 1;
    int32_t *values =
        (int32_t *)mp_read_rows(plan, path, H5T_NATIVE_INT32, rank, rows, &width, error);
    if (values != NULL && !mp_inside(values, rows * width, least, end, path, error)) {
        free(values);
        return NULL;
    }
    if (columns != NULL)
        *columns = width;
    return values;
}

/* Offsets that cut `end` things into `n` ranges. */
static int64_t *mp_read_offset(mp_plan *plan, const char *path, int64_t end, int64_t *n,
                               char *error)
{
    int64_t length = 0;
    int64_t *offset = (int64_t *)mp_read(plan, path, H5T_NATIVE_INT64, 1, &length, error);
    if (offset != NULL && !mp_is_offset(offset, length, end, path, error)) {
        free(offset);
        return NULL;
    }
    *n = length - 1;
    return offset;
}

/* Text of fixed length, with a zero byte behind it, or a whole number: one of the two is NULL. The
 * caller frees the text. */
static int mp_attribute(mp_plan *plan, const char *path, const char *name, char **text,
                        int64_t *number)
{
    int done = 0;
    if (!mp_exists(plan, path))
        return 0;
    H5E_BEGIN_TRY {
        int found = H5Aexists_by_name(plan->file, path, name, H5P_DEFAULT) > 0;
        hid_t attribute =
            found ? H5Aopen_by_name(plan->file, path, name, H5P_DEFAULT, H5P_DEFAULT) : -1;
        hid_t type = attribute < 0 ? -1 : H5Aget_type(attribute);
        hid_t space = type < 0 ? -1 : H5Aget_space(attribute);
        int plain = space >= 0 && H5Sget_simple_extent_type(space) == H5S_SCALAR;
        if (plain && number != NULL && H5Tget_class(type) == H5T_INTEGER)
            done = H5Aread(attribute, H5T_NATIVE_INT64, number) >= 0;
        if (plain && text != NULL && H5Tget_class(type) == H5T_STRING &&
            H5Tis_variable_str(type) == 0) {
            *text = (char *)calloc(H5Tget_size(type) + 1, 1);
            done = *text != NULL && H5Aread(attribute, type, *text) >= 0;
            if (!done)
                free(*text);
        }
        if (space >= 0)
            H5Sclose(space);
        if (type >= 0)
            H5Tclose(type);
        if (attribute >= 0)
            H5Aclose(attribute);
    } H5E_END_TRY;
    return done;
}

char *mp_read_text(mp_plan *plan, const char *group, const char *name, const char *attribute,
                   char *error)
{
    char path[MP_NAME], *text = NULL;
    if (!mp_path(path, group, name, NULL, NULL, error))
        return NULL;
    if (!mp_attribute(plan, path, attribute, &text, NULL))
        return mp_say(error, path, "is not in the plan"), (char *)NULL;
    return text;
}

/* How many elements a set has, or -1. */
static int64_t mp_size(mp_plan *plan, const char *set, char *error)
{
    char path[MP_NAME];
    int64_t size = -1;
    if (!mp_path(path, "mesh", set, NULL, NULL, error))
        return -1;
    if (!mp_attribute(plan, path, "size", NULL, &size) || size < 0)
        return mp_say(error, path, "is no set of the plan"), (int64_t)-1;
    return size;
}

/* How many elements the set has that an attribute names, or -1. */
static int64_t mp_size_by(mp_plan *plan, const char *group, const char *name,
                          const char *attribute, char *error)
{
    char *set = mp_read_text(plan, group, name, attribute, error);
    int64_t size = set == NULL ? -1 : mp_size(plan, set, error);
    free(set);
    return size;
}

mp_set *mp_read_set(mp_plan *plan, const char *name, char *error)
{
    char path[MP_NAME];
    mp_set *set = (mp_set *)calloc(1, sizeof *set);
    if (set == NULL)
        return mp_say(error, name, "out of memory"), (mp_set *)NULL;
    if (mp_path(path, "ordering", name, "new_to_old", NULL, error) &&
        (set->size = mp_size(plan, name, error)) >= 0)
        set->new_to_old =
            mp_read_indices(plan, path, 1, set->size, 0, set->size, NULL, error);
    if (set->new_to_old != NULL && mp_path(path, "ordering", name, "old_to_new", NULL, error))
        set->old_to_new =
            mp_read_indices(plan, path, 1, set->size, 0, set->size, NULL, error);
    if (set->old_to_new == NULL) {
        mp_free_set(set);
        return NULL;
    }
    return set;
}

mp_map *mp_read_map(mp_plan *plan, const char *name, char *error)
{
    char path[MP_NAME];
    mp_map *map = (mp_map *)calloc(1, sizeof *map);
    if (map == NULL)
        return mp_say(error, name, "out of memory"), (mp_map *)NULL;
    if (mp_path(path, "maps", name, "table", NULL, error) &&
        (map->size = mp_size_by(plan, "maps", name, "from_set", error)) >= 0 &&
        (map->to_size = mp_size_by(plan, "maps", name, "to_set", error)) >= 0)
        map->table = mp_read_indices(plan, path, 2, map->size, 0, map->to_size, &map->arity, error);
    if (map->table == NULL) {
        mp_free_map(map);
        return NULL;
    }
    return map;
}

double *mp_read_coordinates(mp_plan *plan, const char *set, int64_t *size, int64_t *dim,
                            char *error)
{
    char path[MP_NAME];
    if (!mp_path(path, "mesh", set, "coordinates", NULL, error) ||
        (*size = mp_size(plan, set, error)) < 0)
        return NULL;
    double *found =
        (double *)mp_read_rows(plan, path, H5T_NATIVE_DOUBLE, 2, *size, dim, error);
    if (found != NULL && *dim != 2 && *dim != 3) {
        free(found);
        return mp_say(error, path, "has not two or three columns: make it anew"), (double *)NULL;
    }
    for (int64_t i = 0; found != NULL && i < *size * *dim; i++)
        if (!(found[i] - found[i] == 0)) { /* of infinity and NaN the difference is NaN */
            free(found);
            return mp_say(error, path, "is not finite everywhere: make it anew"), (double *)NULL;
        }
    return found;
}

int64_t *mp_read_tag(mp_plan *plan, const char *set, const char *tag, int64_t *size, char *error)
{
    char path[MP_NAME];
    if (!mp_path(path, "tags", set, tag, NULL, error) || (*size = mp_size(plan, set, error)) < 0)
        return NULL;
    return (int64_t *)mp_read_rows(plan, path, H5T_NATIVE_INT64, 1, *size, NULL, error);
}

/* A dataset that is text. */
static char *mp_read_lines(mp_plan *plan, const char *path, char *error)
{
    char *text = NULL;
    int64_t one;
    if (!mp_exists(plan, path))
        return mp_say(error, path, "is not in the plan"), (char *)NULL;
    hid_t set = -1, stored = -1, type = -1;
    H5E_BEGIN_TRY {
        set = H5Dopen2(plan->file, path, H5P_DEFAULT);
        stored = set < 0 ? -1 : H5Dget_type(set);
        if (stored >= 0 && H5Tget_class(stored) == H5T_STRING && H5Tis_variable_str(stored) == 0)
            type = H5Tcopy(stored);
        if (type >= 0)
            H5Tset_size(type, H5Tget_size(stored) + 1); /* a zero byte at the end */
    } H5E_END_TRY;
    if (type < 0)
        mp_say(error, path, "is no text");
    else
        text = (char *)mp_read(plan, path, type, 0, &one, error);
    if (type >= 0)
        H5Tclose(type);
    if (stored >= 0)
        H5Tclose(stored);
    if (set >= 0)
        H5Dclose(set);
    return text;
}

int mp_read_group(mp_plan *plan, const char *set, const char *tag, const char *name,
                  int64_t *number, char *error)
{
    char path[MP_NAME], *text, *at, *end;
    int64_t here;
    int found = 0;
    if (!mp_path(path, "group_names", set, tag, NULL, error) ||
        (text = mp_read_lines(plan, path, error)) == NULL)
        return 0;
    for (at = text; at != NULL; at = end) { /* a line: number, blank, name */
        end = strchr(at, '\n');
        if (end != NULL)
            *end++ = 0;
        here = strtoll(at, &at, 10);
        if (*at == ' ' && strcmp(at + 1, name) == 0 && found++ == 0)
            *number = here;
    }
    free(text);
    if (found != 1)
        mp_say(error, name, found ? "is the name of several groups: compare their numbers"
                                  : "is not the name of a group");
    return found == 1;
}

/* Leaves the elements of a group, of the first group of each and rows of element and group. */
static void mp_keep_members(int64_t *found, int64_t n, const int64_t *further, int64_t rows,
                            int64_t group, int64_t *size)
{
    for (int64_t i = 0; i < 2 * rows; i += 2)
        if (further[i + 1] == group)
            found[further[i]] = group;
    *size = 0;
    for (int64_t e = 0; e < n; e++)
        if (found[e] == group)
            found[(*size)++] = e;
}

int64_t *mp_read_members(mp_plan *plan, const char *set, const char *tag, int64_t group,
                         int64_t *size, char *error)
{
    char path[MP_NAME];
    int64_t n = 0, shape[2] = {0, 2}, *further = NULL;
    int64_t *found = mp_read_tag(plan, set, tag, &n, error);
    if (found == NULL || !mp_path(path, "further_groups", set, tag, NULL, error))
        return free(found), (int64_t *)NULL;
    if (mp_exists(plan, path)) {
        further = (int64_t *)mp_read(plan, path, H5T_NATIVE_INT64, 2, shape, error);
        if (further == NULL || shape[1] != 2) {
            if (further != NULL)
                mp_say(error, path, "has not two columns: make it anew");
            return free(found), free(further), (int64_t *)NULL;
        }
    }
    for (int64_t i = 0; i < shape[0]; i++)
        if (further[2 * i] < 0 || further[2 * i] >= n ||
            (i > 0 && further[2 * i] < further[2 * i - 2])) {
            mp_say(error, path, "has elements that do not ascend, or that the set has not: "
                                "make it anew");
            return free(found), free(further), (int64_t *)NULL;
        }
    mp_keep_members(found, n, further, shape[0], group, size);
    free(further);
    return found;
}

/* The variant asked for, or the default; `chosen` has room for MP_NAME bytes. */
static int mp_variant(mp_plan *plan, const char *loop, const char *variant, char *chosen,
                      char *error)
{
    char path[MP_NAME], *own = NULL;
    if (!mp_path(path, "loops", loop, NULL, NULL, error))
        return 0;
    if (!mp_attribute(plan, path, "default", &own, NULL))
        return mp_say(error, path, "is no loop of the plan"), 0;
    variant = variant == NULL ? own : variant;
    int fits = mp_path(path, "loops", loop, variant, NULL, error);
    if (fits)
        strcpy(chosen, variant);
    free(own);
    if (fits && (chosen[0] == 0 || !mp_exists(plan, path)))
        return mp_say(error, path, "there are no such blocks"), 0;
    return fits;
}

/* Blocks are of 1 to block_size elements, and thread colours below the block's number of them. */
static int mp_are_blocks(const mp_loop *loop, const char *path, char *error)
{
    for (int64_t b = 0; b < loop->n_blocks; b++) {
        int64_t begin = loop->block_offset[b], end = loop->block_offset[b + 1];
        int32_t colours = loop->thread_colours[b];
        if (end - begin > loop->block_size)
            return mp_say(error, path, "a block is larger than block_size: make it anew"), 0;
        for (int64_t p = begin; p < end; p++)
            if (loop->thread_colour[p] >= colours)
                return mp_say(error, path, "a thread colour is not below thread_colours: "
                                           "make it anew"), 0;
    }
    return 1;
}

/* The arrays of a loop, where `chosen` names its variant. */
static int mp_read_blocks(mp_plan *plan, const char *name, const char *chosen, mp_loop *loop,
                          char *error)
{
    char path[MP_NAME];
    int64_t blocks, n = loop->size;
    if (!mp_path(path, "loops", name, chosen, "block_offset", error))
        return 0;
    loop->block_offset = mp_read_offset(plan, path, n, &loop->n_blocks, error);
    if (loop->block_offset == NULL ||
        !mp_path(path, "loops", name, chosen, "block_colour_offset", error))
        return 0;
    blocks = loop->n_blocks;
    loop->block_colour_offset = mp_read_offset(plan, path, blocks, &loop->n_block_colours, error);
    if (loop->block_colour_offset == NULL ||
        !mp_path(path, "loops", name, chosen, "block_order", error))
        return 0;
    loop->block_order = mp_read_indices(plan, path, 1, blocks, 0, blocks, NULL, error);
    if (loop->block_order == NULL ||
        !mp_path(path, "loops", name, chosen, "thread_colours", error))
        return 0;
    /* No block has more colours than elements. */
    loop->thread_colours =
        mp_read_indices(plan, path, 1, blocks, 0, loop->block_size + 1, NULL, error);
    if (loop->thread_colours == NULL ||
        !mp_path(path, "loops", name, chosen, "thread_colour", error))
        return 0;
    loop->thread_colour =
        (uint16_t *)mp_read_rows(plan, path, H5T_NATIVE_UINT16, 1, n, NULL, error);
    if (loop->thread_colour == NULL || !mp_are_blocks(loop, path, error) ||
        !mp_path(path, "loops", name, chosen, "elements", error))
        return 0;
    if (!mp_exists(plan, path))
        return 1;
    loop->elements = mp_read_indices(plan, path, 1, n, 0, n, NULL, error);
    return loop->elements != NULL;
}

mp_loop *mp_read_loop(mp_plan *plan, const char *name, const char *variant, char *error)
{
    char chosen[MP_NAME], path[MP_NAME];
    if (!mp_variant(plan, name, variant, chosen, error) ||
        !mp_path(path, "loops", name, chosen, NULL, error))
        return NULL;
    mp_loop *loop = (mp_loop *)calloc(1, sizeof *loop);
    if (loop == NULL)
        return mp_say(error, name, "out of memory"), (mp_loop *)NULL;
    int good = mp_attribute(plan, path, "block_size", NULL, &loop->block_size) &&
               loop->block_size > 0 && loop->block_size < INT32_MAX;
    if (!good)
        mp_say(error, path, "has no block_size: make it anew");
    good = good && (loop->size = mp_size_by(plan, "loops", name, "over", error)) >= 0;
    if (!good || !mp_read_blocks(plan, name, chosen, loop, error)) {
        mp_free_loop(loop);
        return NULL;
    }
    return loop;
}

/* Whether each range has one turn, and each turn waits for lower ones alone. */
static int mp_are_turns(const mp_ranges *r, const char *path, char *error)
{
    char *named = (char *)calloc((size_t)r->n_ranges + 1, 1);
    int good = named != NULL;
    for (int64_t i = 0; good && i < r->n_ranges; i++) {
        good = !named[r->order[i]]++;
        for (int64_t k = r->wait_offset[i]; good && k < r->wait_offset[i + 1]; k++)
            good = r->waits[k] < i;
    }
    if (!good)
        mp_say(error, path, named ? "names a range twice, or waits for a later one: make it anew"
                                  : "out of memory");
    free(named);
    return good;
}

/* Whether each range begins where a block does. */
static int mp_are_whole_blocks(const mp_ranges *r, const mp_loop *blocks, const char *path,
                               char *error)
{
    int64_t b = 0;
    for (int64_t i = 0; i <= r->n_ranges; i++) {
        while (b < blocks->n_blocks && blocks->block_offset[b] < r->offset[i])
            b++;
        if (blocks->block_offset[b] != r->offset[i])
            return mp_say(error, path, "begins inside of a block: make it anew"), 0;
    }
    return 1;
}

int mp_has_ranges(mp_plan *plan, const char *loop)
{
    char path[MP_NAME], error[MP_ERROR];
    return mp_path(path, "loops", loop, "ranges", "offset", error) && mp_exists(plan, path);
}

mp_ranges *mp_read_ranges(mp_plan *plan, const char *loop, char *error)
{
    char path[4][MP_NAME];
    const char *names[4] = {"offset", "order", "wait_offset", "waits"};
    int64_t n_waits = 0, turns = 0, size = mp_size_by(plan, "loops", loop, "over", error);
    for (int i = 0; i < 4; i++)
        if (size < 0 || !mp_path(path[i], "loops", loop, "ranges", names[i], error))
            return NULL;
    mp_ranges *r = (mp_ranges *)calloc(1, sizeof *r);
    if (r == NULL)
        return mp_say(error, loop, "out of memory"), (mp_ranges *)NULL;
    int good = (r->offset = mp_read_offset(plan, path[0], size, &r->n_ranges, error)) != NULL &&
               (r->order = mp_read_indices(plan, path[1], 1, r->n_ranges, 0, r->n_ranges, NULL,
                                           error)) != NULL &&
               (r->waits = (int32_t *)mp_read(plan, path[3], H5T_NATIVE_INT32, 1, &n_waits,
                                              error)) != NULL &&
               mp_inside(r->waits, n_waits, 0, r->n_ranges, path[3], error) &&
               (r->wait_offset = mp_read_offset(plan, path[2], n_waits, &turns, error)) != NULL;
    if (good && turns != r->n_ranges)
        good = (mp_say(error, path[2], "has not one entry a range and one more: make it anew"), 0);
    mp_loop *blocks = good ? mp_read_loop(plan, loop, NULL, error) : NULL;
    good = blocks != NULL && mp_are_whole_blocks(r, blocks, path[0], error);
    mp_free_loop(blocks);
    if (!good || !mp_are_turns(r, path[1], error)) {
        mp_free_ranges(r);
        return NULL;
    }
    return r;
}

/* The staging lists of `n_blocks` blocks, where `chosen` names the variant. */
static mp_staging *mp_read_lists(mp_plan *plan, const char *loop, const char *chosen,
                                 const char *set, int64_t n_blocks, char *error)
{
    char inner[3][MP_NAME], path[3][MP_NAME];
    const char *names[3] = {"point_offset", "points", "exclusive"};
    int64_t size = mp_size(plan, set, error);
    for (int i = 0; i < 3; i++)
        if (size < 0 || !mp_path(inner[i], "staging", set, names[i], NULL, error) ||
            !mp_path(path[i], "loops", loop, chosen, inner[i] + 1, error))
            return NULL;
    mp_staging *s = (mp_staging *)calloc(1, sizeof *s);
    if (s == NULL)
        return mp_say(error, set, "out of memory"), (mp_staging *)NULL;
    s->points = (int32_t *)mp_read(plan, path[1], H5T_NATIVE_INT32, 1, &s->loads, error);
    if (s->points != NULL && mp_inside(s->points, s->loads, 0, size, path[1], error))
        s->point_offset = mp_read_offset(plan, path[0], s->loads, &s->n_blocks, error);
    if (s->point_offset != NULL && s->n_blocks != n_blocks)
        mp_say(error, path[0], "has not one entry a block and one more: make it anew");
    else if (s->point_offset != NULL)
        s->exclusive = (uint8_t *)mp_read_rows(plan, path[2], H5T_NATIVE_UINT8, 1, s->loads, NULL,
                                               error);
    int good = s->exclusive != NULL;
    for (int64_t i = 0; good && i < s->loads; i++)
        if (s->exclusive[i] > 1)
            good = (mp_say(error, path[2], "holds something else than 0 and 1: make it anew"), 0);
    if (!good) {
        mp_free_staging(s);
        return NULL;
    }
    return s;
}

mp_staging *mp_read_staging(mp_plan *plan, const char *loop, const char *variant, const char *set,
                            char *error)
{
    char chosen[MP_NAME];
    mp_loop *blocks = mp_read_loop(plan, loop, variant, error);
    mp_staging *found = NULL;
    if (blocks != NULL && mp_variant(plan, loop, variant, chosen, error))
        found = mp_read_lists(plan, loop, chosen, set, blocks->n_blocks, error);
    mp_free_loop(blocks);
    return found;
}

/* Whether every place of every column leads to a point that its block stages. */
static int mp_are_staged(const uint16_t *local, int64_t arity, const mp_loop *loop,
                         const mp_staging *staging, const char *path, char *error)
{
    for (int64_t k = 0; k < arity; k++)
        for (int64_t b = 0; b < loop->n_blocks; b++) {
            int64_t staged = staging->point_offset[b + 1] - staging->point_offset[b];
            for (int64_t p = loop->block_offset[b]; p < loop->block_offset[b + 1]; p++)
                if (local[k * loop->size + p] >= staged)
                    return mp_say(error, path, "leads out of the staging list of its block: "
                                               "make it anew"), 0;
        }
    return 1;
}

uint16_t *mp_read_local(mp_plan *plan, const char *loop, const char *variant, const char *map,
                        char *error)
{
    char chosen[MP_NAME], inner[MP_NAME], path[MP_NAME];
    if (!mp_variant(plan, loop, variant, chosen, error) ||
        !mp_path(inner, "local", map, NULL, NULL, error) ||
        !mp_path(path, "loops", loop, chosen, inner + 1, error))
        return NULL;
    uint16_t *local = NULL;
    int64_t n = 0;
    char *set = mp_read_text(plan, "maps", map, "to_set", error);
    mp_map *whole = set ? mp_read_map(plan, map, error) : NULL;
    mp_loop *blocks = whole ? mp_read_loop(plan, loop, chosen, error) : NULL;
    mp_staging *s =
        blocks ? mp_read_lists(plan, loop, chosen, set, blocks->n_blocks, error) : NULL;
    if (s != NULL)
        local = (uint16_t *)mp_read_rows(plan, path, H5T_NATIVE_UINT16, 2, whole->arity, &n, error);
    if (local != NULL && n != blocks->size)
        mp_say(error, path, "has not one column for each element: make it anew");
    if (local != NULL &&
        (n != blocks->size || !mp_are_staged(local, whole->arity, blocks, s, path, error))) {
        free(local);
        local = NULL;
    }
    mp_free_staging(s);
    mp_free_loop(blocks);
    mp_free_map(whole);
    free(set);
    return local;
}

/* The rows (or columns) of the elements of the set that an attribute names: counting up from 0, or
 * -1; `end` receives how many. */
static int32_t *mp_read_numbers(mp_plan *plan, const char *matrix, const char *name,
                                const char *set, int64_t *size, int64_t *end, char *error)
{
    char path[MP_NAME];
    if (!mp_path(path, "matrices", matrix, name, NULL, error) ||
        (*size = mp_size_by(plan, "matrices", matrix, set, error)) < 0)
        return NULL;
    int32_t *found = (int32_t *)mp_read_rows(plan, path, H5T_NATIVE_INT32, 1, *size, NULL, error);
    *end = 0;
    for (int64_t i = 0; found != NULL && i < *size; i++)
        if (found[i] == *end)
            ++*end;
        else if (found[i] != -1) {
            free(found);
            return mp_say(error, path, "does not count up from 0: make it anew"),
                   (int32_t *)NULL;
        }
    return found;
}

mp_matrix *mp_read_matrix(mp_plan *plan, const char *name, char *error)
{
    char of[MP_NAME], path[2][MP_NAME];
    int64_t rows = 0, columns = 0;
    mp_matrix *m = (mp_matrix *)calloc(1, sizeof *m);
    if (m == NULL)
        return mp_say(error, name, "out of memory"), (mp_matrix *)NULL;
    if (mp_path(of, "matrices", name, "column_of", NULL, error) &&
        mp_path(path[0], "matrices", name, "row_ptr", NULL, error) &&
        mp_path(path[1], "matrices", name, "columns", NULL, error))
        m->row_of = mp_read_numbers(plan, name, "row_of", "row_set", &m->row_set_size, &rows, error);
    if (m->row_of != NULL)
        /* Of one set for both, rows and columns are the same. */
        m->column_of =
            mp_read_numbers(plan, name, mp_exists(plan, of) ? "column_of" : "row_of", "column_set",
                            &m->column_set_size, &columns, error);
    if (m->column_of != NULL)
        m->columns = (int32_t *)mp_read(plan, path[1], H5T_NATIVE_INT32, 1, &m->n_nonzeros, error);
    if (m->columns != NULL && mp_inside(m->columns, m->n_nonzeros, 0, columns, path[1], error))
        m->row_ptr = mp_read_offset(plan, path[0], m->n_nonzeros, &m->n_rows, error);
    if (m->row_ptr == NULL || m->n_rows != rows) {
        if (m->row_ptr != NULL)
            mp_say(error, path[0], "has not one entry a row and one more: make it anew");
        mp_free_matrix(m);
        return NULL;
    }
    return m;
}

mp_places *mp_read_places(mp_plan *plan, const char *matrix, const char *loop, char *error)
{
    char path[MP_NAME];
    mp_places *place = (mp_places *)calloc(1, sizeof *place);
    if (place == NULL)
        return mp_say(error, matrix, "out of memory"), (mp_places *)NULL;
    mp_matrix *m = mp_read_matrix(plan, matrix, error);
    if (m != NULL && mp_path(path, "matrices", matrix, "place", loop, error) &&
        (place->size = mp_size_by(plan, "loops", loop, "over", error)) >= 0)
        place->table = mp_read_indices(plan, path, 2, place->size, -1, m->n_nonzeros,
                                       &place->entries, error);
    mp_free_matrix(m);
    if (place->table == NULL) {
        mp_free_places(place);
        return NULL;
    }
    return place;
}

void mp_free_set(mp_set *set)
{
    if (set != NULL) {
        free(set->new_to_old);
        free(set->old_to_new);
        free(set);
    }
}

void mp_free_map(mp_map *map)
{
    if (map != NULL) {
        free(map->table);
        free(map);
    }
}

void mp_free_loop(mp_loop *loop)
{
    if (loop != NULL) {
        free(loop->block_offset);
        free(loop->block_colour_offset);
        free(loop->block_order);
        free(loop->thread_colour);
        free(loop->thread_colours);
        free(loop->elements);
        free(loop);
    }
}

void mp_free_ranges(mp_ranges *ranges)
{
    if (ranges != NULL) {
        free(ranges->offset);
        free(ranges->order);
        free(ranges->wait_offset);
        free(ranges->waits);
        free(ranges);
    }
}

void mp_free_staging(mp_staging *s)
{
    if (s != NULL) {
        free(s->point_offset);
        free(s->points);
        free(s->exclusive);
        free(s);
    }
}

void mp_free_matrix(mp_matrix *matrix)
{
    if (matrix != NULL) {
        free(matrix->row_ptr);
        free(matrix->columns);
        free(matrix->row_of);
        free(matrix->column_of);
        free(matrix);
    }
}

void mp_free_places(mp_places *place)
{
    if (place != NULL) {
        free(place->table);
        free(place);
    }
}

static void mp_take(const int32_t *index, int64_t n, const char *from, char *to, size_t bytes)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(to + (size_t)i * bytes, from + (size_t)index[i] * bytes, bytes);
}

void mp_apply(const mp_set *set, const void *old_values, void *new_values, size_t bytes)
{
    mp_take(set->new_to_old, set->size, (const char *)old_values, (char *)new_values, bytes);
}

void mp_restore(const mp_set *set, const void *new_values, void *old_values, size_t bytes)
{
    mp_take(set->old_to_new, set->size, (const char *)new_values, (char *)old_values, bytes);
}

#endif /* MESHPREP_PLAN_IMPLEMENTATION */
