/* Reads a meshprep plan (docs/plan-format.md, versions 1 to 3) in C99 or C++11, over libhdf5 from 1.8 on.
 *
 * In one source file of the program:
 *
 *     #define MESHPREP_PLAN_IMPLEMENTATION
 *     #include "meshprep_plan.h"
 *
 * Every function that can fail returns NULL and says why in `error`, MP_ERROR bytes that the caller
 * provides. A plan that is damaged, foreign or of another version is refused before HDF5 reads it.
 */
#ifndef MESHPREP_PLAN_H
#define MESHPREP_PLAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MP_ERROR 256
#define MP_NEWEST_VERSION 3

typedef struct mp_plan mp_plan;

/* A set and its two permutations: new_to_old[i] is the old number of what is number i now. */
typedef struct {
    int64_t size;
    int32_t *new_to_old, *old_to_new;
} mp_set;

/* A map in the new numbering: element e reaches the `arity` elements from table[e * arity] on. */
typedef struct {
    int64_t size, arity;
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

#ifdef MESHPREP_PLAN_IMPLEMENTATION

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
    plan->file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
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

/* Whether there is such an object; H5Lexists wants every group on the way to exist. */
static int mp_exists(mp_plan *plan, const char *path)
{
    char part[MP_NAME];
    for (const char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(at - path), path);
        if (H5Lexists(plan->file, part, H5P_DEFAULT) <= 0)
            return 0;
    }
    return H5Lexists(plan->file, path, H5P_DEFAULT) > 0;
}

/* A dataset of `rank` dimensions into memory of its own; the lengths go into `shape`. */
static void *mp_read(mp_plan *plan, const char *path, hid_t type, int rank, int64_t *shape,
                     char *error)
{
    hsize_t length[2] = {1, 1};
    void *values = NULL;
    if (!mp_exists(plan, path))
        return mp_say(error, path, "is not in the plan"), (void *)NULL;
    hid_t set = H5Dopen2(plan->file, path, H5P_DEFAULT), space = set < 0 ? -1 : H5Dget_space(set);
    if (space >= 0 && H5Sget_simple_extent_ndims(space) == rank &&
        H5Sget_simple_extent_dims(space, length, NULL) == rank) {
        size_t n = (size_t)(length[0] * length[1]);
        values = malloc(n ? n * H5Tget_size(type) : 1);
        if (values != NULL && n && H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) {
            free(values);
            values = NULL;
        }
    }
    if (space >= 0)
        H5Sclose(space);
    if (set >= 0)
        H5Dclose(set);
    if (values == NULL)
        mp_say(error, path, "cannot be read");
    shape[0] = (int64_t)length[0];
    if (rank == 2)
        shape[1] = (int64_t)length[1];
    return values;
}

/* Text of fixed length, padded with zero bytes, or a whole number. */
static int mp_attribute(mp_plan *plan, const char *path, const char *name, char *text,
                        int64_t *number)
{
    int done = 0;
    if (!mp_exists(plan, path) ||
        H5Aexists_by_name(plan->file, path, name, H5P_DEFAULT) <= 0)
        return 0;
    hid_t attribute = H5Aopen_by_name(plan->file, path, name, H5P_DEFAULT, H5P_DEFAULT);
    hid_t type = attribute < 0 ? -1 : H5Aget_type(attribute);
    if (type >= 0 && number != NULL)
        done = H5Aread(attribute, H5T_NATIVE_INT64, number) >= 0;
    if (type >= 0 && text != NULL && H5Tget_size(type) < MP_NAME) {
        memset(text, 0, MP_NAME);
        done = H5Aread(attribute, type, text) >= 0;
    }
    if (type >= 0)
        H5Tclose(type);
    if (attribute >= 0)
        H5Aclose(attribute);
    return done;
}

char *mp_read_text(mp_plan *plan, const char *group, const char *name, const char *attribute,
                   char *error)
{
    char path[MP_NAME], *text = NULL;
    if (!mp_path(path, group, name, NULL, NULL, error))
        return NULL;
    if (!mp_exists(plan, path) ||
        H5Aexists_by_name(plan->file, path, attribute, H5P_DEFAULT) <= 0)
        return mp_say(error, path, "is not in the plan"), (char *)NULL;
    hid_t object = H5Aopen_by_name(plan->file, path, attribute, H5P_DEFAULT, H5P_DEFAULT);
    hid_t type = object < 0 ? -1 : H5Aget_type(object);
    if (type >= 0)
        text = (char *)calloc(H5Tget_size(type) + 1, 1);
    if (text != NULL && H5Aread(object, type, text) < 0) {
        free(text);
        text = NULL;
    }
    if (type >= 0)
        H5Tclose(type);
    if (object >= 0)
        H5Aclose(object);
    if (text == NULL)
        mp_say(error, path, "cannot be read");
    return text;
}

mp_set *mp_read_set(mp_plan *plan, const char *name, char *error)
{
    char path[MP_NAME];
    mp_set *set = (mp_set *)calloc(1, sizeof *set);
    if (set == NULL)
        return mp_say(error, name, "out of memory"), (mp_set *)NULL;
    if (mp_path(path, "ordering", name, "new_to_old", NULL, error))
        set->new_to_old = (int32_t *)mp_read(plan, path, H5T_NATIVE_INT32, 1, &set->size, error);
    if (set->new_to_old != NULL && mp_path(path, "ordering", name, "old_to_new", NULL, error))
        set->old_to_new = (int32_t *)mp_read(plan, path, H5T_NATIVE_INT32, 1, &set->size, error);
    if (set->old_to_new == NULL) {
        mp_free_set(set);
        return NULL;
    }
    return set;
}

mp_map *mp_read_map(mp_plan *plan, const char *name, char *error)
{
    char path[MP_NAME];
    int64_t shape[2] = {0, 0};
    mp_map *map = (mp_map *)calloc(1, sizeof *map);
    if (map == NULL)
        return mp_say(error, name, "out of memory"), (mp_map *)NULL;
    if (mp_path(path, "maps", name, "table", NULL, error))
        map->table = (int32_t *)mp_read(plan, path, H5T_NATIVE_INT32, 2, shape, error);
    map->size = shape[0];
    map->arity = shape[1];
    if (map->table == NULL) {
        mp_free_map(map);
        return NULL;
    }
    return map;
}

int64_t *mp_read_tag(mp_plan *plan, const char *set, const char *tag, int64_t *size, char *error)
{
    char path[MP_NAME];
    if (!mp_path(path, "tags", set, tag, NULL, error))
        return NULL;
    return (int64_t *)mp_read(plan, path, H5T_NATIVE_INT64, 1, size, error);
}

/* A dataset that is text. */
static char *mp_read_lines(mp_plan *plan, const char *path, char *error)
{
    char *text = NULL;
    int64_t one;
    if (!mp_exists(plan, path))
        return mp_say(error, path, "is not in the plan"), (char *)NULL;
    hid_t set = H5Dopen2(plan->file, path, H5P_DEFAULT), stored = set < 0 ? -1 : H5Dget_type(set);
    hid_t type = stored < 0 ? -1 : H5Tcopy(stored);
    if (type >= 0 && H5Tset_size(type, H5Tget_size(stored) + 1) >= 0) /* a zero byte at the end */
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
        if (further == NULL)
            return free(found), (int64_t *)NULL;
    }
    for (int64_t i = 0; i < shape[0] * shape[1]; i += 2) /* a row: element, group */
        if (further[i + 1] == group && further[i] >= 0 && further[i] < n)
            found[further[i]] = group;
    free(further);
    *size = 0;
    for (int64_t e = 0; e < n; e++)
        if (found[e] == group)
            found[(*size)++] = e;
    return found;
}

/* The variant asked for, or the default; `chosen` has room for MP_NAME bytes. */
static int mp_variant(mp_plan *plan, const char *loop, const char *variant, char *chosen,
                      char *error)
{
    char path[MP_NAME];
    if (!mp_path(path, "loops", loop, NULL, NULL, error))
        return 0;
    if (!mp_attribute(plan, path, "default", chosen, NULL))
        return mp_say(error, path, "is no loop of the plan"), 0;
    if (!mp_path(path, "loops", loop, variant == NULL ? chosen : variant, NULL, error))
        return 0;
    if (variant != NULL)
        strcpy(chosen, variant); /* fits, since its path does */
    if (chosen[0] == 0 || !mp_exists(plan, path))
        return mp_say(error, path, "there are no such blocks"), 0;
    return 1;
}

/* The dataset `name` of a variant. */
static void *mp_read_in(mp_plan *plan, const char *loop, const char *variant, const char *name,
                        hid_t type, int rank, int64_t *shape, char *error)
{
    char path[MP_NAME];
    if (!mp_path(path, "loops", loop, variant, name, error))
        return NULL;
    return mp_read(plan, path, type, rank, shape, error);
}

/* The list of a variant that has one. */
static int mp_read_elements(mp_plan *plan, const char *loop, const char *variant, mp_loop *into,
                            char *error)
{
    char path[MP_NAME];
    int64_t n = 0;
    if (!mp_path(path, "loops", loop, variant, "elements", error))
        return 0;
    if (!mp_exists(plan, path))
        return 1;
    into->elements = (int32_t *)mp_read(plan, path, H5T_NATIVE_INT32, 1, &n, error);
    if (into->elements != NULL && n != into->size)
        return mp_say(error, path, "does not list every element once"), 0;
    return into->elements != NULL;
}

mp_loop *mp_read_loop(mp_plan *plan, const char *name, const char *variant, char *error)
{
    char chosen[MP_NAME], path[MP_NAME];
    int64_t n, blocks = 0;
    if (!mp_variant(plan, name, variant, chosen, error) ||
        !mp_path(path, "loops", name, chosen, NULL, error))
        return NULL;
    mp_loop *loop = (mp_loop *)calloc(1, sizeof *loop);
    if (loop == NULL)
        return mp_say(error, name, "out of memory"), (mp_loop *)NULL;
    loop->block_offset = (int64_t *)mp_read_in(plan, name, chosen, "block_offset",
                                               H5T_NATIVE_INT64, 1, &blocks, error);
    loop->n_blocks = blocks - 1;
    loop->block_colour_offset = (int64_t *)mp_read_in(plan, name, chosen, "block_colour_offset",
                                                      H5T_NATIVE_INT64, 1, &blocks, error);
    loop->n_block_colours = blocks - 1;
    loop->block_order =
        (int32_t *)mp_read_in(plan, name, chosen, "block_order", H5T_NATIVE_INT32, 1, &n, error);
    loop->thread_colour = (uint16_t *)mp_read_in(plan, name, chosen, "thread_colour",
                                                 H5T_NATIVE_UINT16, 1, &loop->size, error);
    loop->thread_colours = (int32_t *)mp_read_in(plan, name, chosen, "thread_colours",
                                                 H5T_NATIVE_INT32, 1, &n, error);
    if (!mp_attribute(plan, path, "block_size", NULL, &loop->block_size) ||
        loop->block_offset == NULL || loop->block_colour_offset == NULL ||
        loop->block_order == NULL || loop->thread_colour == NULL || loop->thread_colours == NULL ||
        !mp_read_elements(plan, name, chosen, loop, error)) {
        mp_free_loop(loop);
        return NULL;
    }
    return loop;
}

mp_staging *mp_read_staging(mp_plan *plan, const char *loop, const char *variant, const char *set,
                            char *error)
{
    char chosen[MP_NAME], inner[3][MP_NAME];
    const char *names[3] = {"point_offset", "points", "exclusive"};
    int64_t rows = 0;
    if (!mp_variant(plan, loop, variant, chosen, error))
        return NULL;
    for (int i = 0; i < 3; i++)
        if (!mp_path(inner[i], "staging", set, names[i], NULL, error))
            return NULL;
    mp_staging *s = (mp_staging *)calloc(1, sizeof *s);
    if (s == NULL)
        return mp_say(error, set, "out of memory"), (mp_staging *)NULL;
    s->point_offset = (int64_t *)mp_read_in(plan, loop, chosen, inner[0] + 1, H5T_NATIVE_INT64, 1,
                                            &rows, error);
    s->n_blocks = rows - 1;
    s->points = (int32_t *)mp_read_in(plan, loop, chosen, inner[1] + 1, H5T_NATIVE_INT32, 1,
                                      &s->loads, error);
    s->exclusive = (uint8_t *)mp_read_in(plan, loop, chosen, inner[2] + 1, H5T_NATIVE_UINT8, 1,
                                         &rows, error);
    if (s->point_offset == NULL || s->points == NULL || s->exclusive == NULL) {
        mp_free_staging(s);
        return NULL;
    }
    return s;
}

uint16_t *mp_read_local(mp_plan *plan, const char *loop, const char *variant, const char *map,
                        char *error)
{
    char chosen[MP_NAME], inner[MP_NAME];
    int64_t shape[2];
    if (!mp_variant(plan, loop, variant, chosen, error) ||
        !mp_path(inner, "local", map, NULL, NULL, error))
        return NULL;
    return (uint16_t *)mp_read_in(plan, loop, chosen, inner + 1, H5T_NATIVE_UINT16, 2, shape,
                                  error);
}

/* A dataset of a matrix; NULL where it is not there, which `error` says. */
static void *mp_read_of(mp_plan *plan, const char *matrix, const char *name, hid_t type, int64_t *n,
                        char *error)
{
    char path[MP_NAME];
    if (!mp_path(path, "matrices", matrix, name, NULL, error))
        return NULL;
    return mp_read(plan, path, type, 1, n, error);
}

mp_matrix *mp_read_matrix(mp_plan *plan, const char *name, char *error)
{
    char path[MP_NAME];
    int64_t rows = 0;
    mp_matrix *m = (mp_matrix *)calloc(1, sizeof *m);
    if (m == NULL)
        return mp_say(error, name, "out of memory"), (mp_matrix *)NULL;
    m->row_ptr =
        (int64_t *)mp_read_of(plan, name, "row_ptr", H5T_NATIVE_INT64, &rows, error);
    m->n_rows = rows - 1;
    if (m->row_ptr != NULL)
        m->columns = (int32_t *)mp_read_of(plan, name, "columns", H5T_NATIVE_INT32, &m->n_nonzeros,
                                           error);
    if (m->columns != NULL)
        m->row_of = (int32_t *)mp_read_of(plan, name, "row_of", H5T_NATIVE_INT32, &m->row_set_size,
                                          error);
    if (m->row_of != NULL && mp_path(path, "matrices", name, "column_of", NULL, error))
        /* Of one set for both, rows and columns are the same. */
        m->column_of = (int32_t *)mp_read_of(
            plan, name, mp_exists(plan, path) ? "column_of" : "row_of", H5T_NATIVE_INT32,
            &m->column_set_size, error);
    if (m->column_of == NULL) {
        mp_free_matrix(m);
        return NULL;
    }
    return m;
}

mp_places *mp_read_places(mp_plan *plan, const char *matrix, const char *loop, char *error)
{
    char path[MP_NAME];
    int64_t shape[2] = {0, 0};
    mp_places *place = (mp_places *)calloc(1, sizeof *place);
    if (place == NULL)
        return mp_say(error, matrix, "out of memory"), (mp_places *)NULL;
    if (mp_path(path, "matrices", matrix, "place", loop, error))
        place->table = (int32_t *)mp_read(plan, path, H5T_NATIVE_INT32, 2, shape, error);
    place->size = shape[0];
    place->entries = shape[1];
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
