/* Reads one part of a mesh that `meshprep split` wrote (docs/plan-format.md, "A mesh in parts"), in
 * C99 or C++11, over libhdf5 from 1.8 on and meshprep_plan.h.
 *
 * In one source file of the program:
 *
 *     #define MESHPREP_PLAN_IMPLEMENTATION
 *     #define MESHPREP_PARTS_IMPLEMENTATION
 *     #include "meshprep_parts.h"
 *
 * The tables of the file are checked against its seal, and the arrays of the part against their
 * digest; runs and messages also against each other, so that no loop over them leaves its memory. Of
 * the other arrays mp_part_array() knows only the length: take mp_part_indices() and
 * mp_part_offset() for those that index others. Of other parts nothing is read. For machines with
 * the least byte first.
 */
#ifndef MESHPREP_PARTS_H
#define MESHPREP_PARTS_H

#include "meshprep_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mp_part mp_part;

/* The elements of a set that a part has, in runs: core, boundary, exec, halo. */
typedef struct {
    int64_t first;       /* global number of the first owned element */
    int64_t core, owned; /* owned: core and boundary */
    int64_t exec, halo;
} mp_runs;

/* Rows for or from other parts: neighbour i has rows[offset[i]] .. rows[offset[i + 1] - 1]. What is
 * received has no `rows` (NULL): it stands from offset[i] on in its run. Free nothing of it. */
typedef struct {
    int64_t neighbours;
    const int32_t *parts;
    const int64_t *offset;
    const int32_t *rows;
} mp_messages;

/* Part `part` of `parts`, from 0; NULL and a reason where it cannot be read. */
mp_part *mp_open_part(const char *path, int64_t parts, int64_t part, char *error);
void mp_close_part(mp_part *part);

/* An array by its place in the format, such as "maps/edges->cells/table", whose rows have `bytes`
 * each; it belongs to the part. */
const void *mp_part_array(const mp_part *part, const char *name, size_t bytes, int64_t *rows,
                          char *error);
/* The same of int32 with `columns` a row, all from `least` to end - 1: of "maps/edges->cells/table"
 * from 0 to the cells that the part has, owned, exec and halo. */
const int32_t *mp_part_indices(const mp_part *part, const char *name, int64_t columns,
                               int64_t least, int64_t end, int64_t *rows, char *error);
/* The same of int64, `n` and one more, that ascend from 0 to `end`, such as block_offset. */
const int64_t *mp_part_offset(const mp_part *part, const char *name, int64_t end, int64_t *n,
                              char *error);
int mp_part_runs(const mp_part *part, const char *set, mp_runs *runs, char *error);
/* `kind` is "send_exec", "send_halo", "receive_exec" or "receive_halo". */
int mp_part_messages(const mp_part *part, const char *set, const char *kind, mp_messages *messages,
                     char *error);
/* Where the owned, exec and halo elements of a set lie, `dim` numbers each, 2 or 3. NULL and a
 * reason where no loop of the parts reaches the nodes. It belongs to the part. */
const double *mp_part_coordinates(const mp_part *part, const char *set, int64_t *dim, char *error);
/* The first group of each of these elements, 0 for none, such as "physical" of "boundary_edges". */
const int64_t *mp_part_tag(const mp_part *part, const char *set, const char *tag, int64_t *size,
                           char *error);
/* The number of the group `name`; 0 and a reason where no group or several of the mesh have it. */
int mp_part_group(const mp_part *part, const char *set, const char *tag, const char *name,
                  int64_t *number, char *error);
/* Which of these elements are in a group, ascending, also those in other groups, too; `size`
 * receives how many, 0 where the group is in other parts alone. free() them. */
int64_t *mp_part_members(const mp_part *part, const char *set, const char *tag, int64_t group,
                         int64_t *size, char *error);

#ifdef __cplusplus
}
#endif

#endif /* MESHPREP_PARTS_H */

#if defined(MESHPREP_PARTS_IMPLEMENTATION) && !defined(MESHPREP_PARTS_IMPLEMENTED)
#define MESHPREP_PARTS_IMPLEMENTED

typedef struct {
    char *name;
    size_t row_bytes;
    int64_t rows;
    uint8_t *values;
} mp_slice;

struct mp_part {
    int64_t n, parts, own; /* own: the number of this part */
    int64_t begin, end; /* the bytes of the file that hold the slices of all parts */
    mp_slice *slices;
    char *words; /* the description: JSON */
};

/* The seal of a file of parts covers all but its slices; where these lie goes into `part`. */
static int mp_check_parts_seal(FILE *file, const char *path, mp_part *part, char *error)
{
    mp_sha sha = {{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                   0x1f83d9ab, 0x5be0cd19}, {0}, 0, 0};
    char seal[MP_SEAL + 1] = {0}, expected[MP_SEAL + 1] = {0}, digest[65], given[65] = {0};
    long long begin, end, at = MP_SEAL;
    uint8_t piece[4096];
    size_t n = 1;
    if (fread(seal, 1, MP_SEAL, file) != MP_SEAL || strncmp(seal, "meshprep-parts ", 15) != 0)
        return mp_say(error, path, "no parts: give a .parts.h5 file that meshprep wrote"), 0;
    if (sscanf(seal, "meshprep-parts 1\nsha256 %64s\nslices %lld %lld\n", given, &begin, &end) != 3)
        return mp_say(error, path, "parts of another version: split anew"), 0;
    while (n > 0) {
        size_t most = sizeof piece;
        if (at == begin && end > begin) {
            if (fseek(file, (long)end, SEEK_SET) != 0)
                break;
            at = end;
        }
        if (at < begin && begin - at < (long long)most)
            most = (size_t)(begin - at);
        n = fread(piece, 1, most, file);
        mp_sha_add(&sha, piece, n);
        at += (long long)n;
    }
    mp_sha_text(&sha, digest);
    snprintf(expected, sizeof expected, "meshprep-parts 1\nsha256 %s\nslices %lld %lld\n", digest,
             begin, end);
    if (memcmp(seal, expected, MP_SEAL) != 0)
        return mp_say(error, path, "damaged: its tables do not match their checksum"), 0;
    /* Behind the slices there may be nothing to miss, and HDF5 prints what it thinks of it. */
    if (fseek(file, 0, SEEK_END) != 0 || ftell(file) < end)
        return mp_say(error, path, "cut short: split the mesh anew"), 0;
    part->begin = begin;
    part->end = end;
    return 1;
}

/* A text of fixed length, which the caller frees. */
static char *mp_text_at(mp_plan *file, const char *path, char *error)
{
    char *text = NULL;
    hid_t set = mp_exists(file, path) ? H5Dopen2(file->file, path, H5P_DEFAULT) : -1;
    hid_t type = set < 0 ? -1 : H5Dget_type(set);
    if (type >= 0 && H5Tget_class(type) == H5T_STRING && !H5Tis_variable_str(type)) {
        size_t n = H5Tget_size(type);
        text = (char *)calloc(n + 1, 1);
        if (text != NULL && H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) < 0) {
            free(text);
            text = NULL;
        }
    }
    if (type >= 0)
        H5Tclose(type);
    if (set >= 0)
        H5Dclose(set);
    if (text == NULL)
        mp_say(error, path, "is missing, or cannot be read");
    return text;
}

/* The four hexadecimal digits of a JSON escape, or -1. */
static long mp_digits(const char *at)
{
    char digits[5] = {0};
    if (at[0] != '\\' || at[1] != 'u' || strspn(at + 2, "0123456789abcdefABCDEF") < 4)
        return -1;
    memcpy(digits, at + 2, 4);
    return strtol(digits, NULL, 16);
}

/* A JSON escape as UTF-8, no longer than itself; the length of the escape, or 0. */
static size_t mp_unescape(const char *from, char **to)
{
    const char *letters = "bfnrt", *found = from[1] ? strchr(letters, from[1]) : NULL;
    if (from[1] != 'u') {
        *(*to)++ = found ? "\b\f\n\r\t"[found - letters] : from[1];
        return from[1] ? 2 : 0;
    }
    long code = mp_digits(from), low = code >> 10 == 0x36 ? mp_digits(from + 6) : -1;
    size_t length = low < 0 ? 6 : 12;
    if (code < 0)
        return 0;
    if (low >= 0)
        code = 0x10000 + ((code & 0x3FF) << 10) + (low & 0x3FF);
    int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    const int leads[] = {0, 0xC0, 0xE0, 0xF0};
    *(*to)++ = (char)(leads[more] | code >> 6 * more);
    while (more-- > 0)
        *(*to)++ = (char)(0x80 | (code >> 6 * more & 0x3F));
    return length;
}

/* The next text of a JSON list of names; it is cut out of `at`. */
static char *mp_next_name(char **at)
{
    char *from = strchr(*at, '"'), *start = from, *to = from;
    if (from == NULL)
        return NULL;
    for (from++; *from != 0 && *from != '"';) {
        size_t escape = *from == '\\' ? mp_unescape(from, &to) : 0;
        if (*from == '\\' && escape == 0)
            return NULL;
        if (escape == 0)
            *to++ = *from;
        from += escape ? escape : 1;
    }
    if (*from == 0)
        return NULL;
    *at = from + 1;
    char *name = (char *)calloc((size_t)(to - start) + 1, 1);
    if (name != NULL)
        memcpy(name, start, (size_t)(to - start));
    return name;
}

/* Where a dataset lies, how many rows it has, and the bytes of one. */
static int mp_place(mp_plan *file, const char *path, int64_t *address, int64_t *rows, size_t *row,
                    char *error)
{
    hsize_t shape[4] = {0, 1, 1, 1}, bytes = 0;
    int done = 0;
    if (!mp_exists(file, path))
        return mp_say(error, path, "is missing"), 0;
    H5E_BEGIN_TRY {
        hid_t set = H5Dopen2(file->file, path, H5P_DEFAULT);
        hid_t space = set < 0 ? -1 : H5Dget_space(set), type = set < 0 ? -1 : H5Dget_type(set);
        int rank = space < 0 ? 0 : H5Sget_simple_extent_ndims(space);
        if (type >= 0 && rank >= 1 && rank <= 4 && mp_is_plain(file, set, space, rank, shape)) {
            haddr_t where = H5Dget_offset(set);
            *row = H5Tget_size(type) * (size_t)(shape[1] * shape[2] * shape[3]);
            *rows = (int64_t)shape[0];
            *address = where == HADDR_UNDEF ? 0 : (int64_t)where;
            done = H5Fget_filesize(file->file, &bytes) >= 0 &&
                   (where == HADDR_UNDEF ? shape[0] == 0 : where <= bytes);
        }
        if (type >= 0)
            H5Tclose(type);
        if (space >= 0)
            H5Sclose(space);
        if (set >= 0)
            H5Dclose(set);
    } H5E_END_TRY;
    return done ? 1 : (mp_say(error, path, "is not stored as plain rows"), 0);
}

/* The rows ends[0] to ends[1] - 1 of a dataset; their bytes go into `sha`. */
static int mp_read_slice(mp_plan *file, FILE *bytes, const char *path, const mp_part *part,
                         const int64_t *ends, mp_slice *one, mp_sha *sha, char *error)
{
    int64_t address = 0, rows = 0;
    if (!mp_place(file, path, &address, &rows, &one->row_bytes, error))
        return 0;
    if (ends[0] < 0 || ends[1] < ends[0] || ends[1] > rows)
        return mp_say(error, path, "the part has rows that there are not: split the mesh anew"), 0;
    /* Only the slices are sealed by the digests of parts: bytes from elsewhere are no part. */
    int64_t all = rows * (int64_t)one->row_bytes;
    if (all > 0 && (address < part->begin || all > part->end - address))
        return mp_say(error, path, "lies outside of the slices: split the mesh anew"), 0;
    one->rows = ends[1] - ends[0];
    size_t size = (size_t)one->rows * one->row_bytes;
    one->values = (uint8_t *)malloc(size ? size : 1);
    if (one->values == NULL)
        return mp_say(error, path, "out of memory"), 0;
    if (fseek(bytes, (long)(address + ends[0] * (int64_t)one->row_bytes), SEEK_SET) != 0 ||
        fread(one->values, 1, size, bytes) != size)
        return mp_say(error, path, "cut short: split the mesh anew"), 0;
    mp_sha_add(sha, one->values, size);
    return 1;
}

/* The slices of a part, by the tables; their bytes go into `sha`. */
static int mp_read_slices(mp_plan *file, FILE *bytes, const char *at, int64_t part, mp_part *into,
                          mp_sha *sha, char *error)
{
    char path[MP_NAME];
    int64_t shape[2] = {0, 0};
    snprintf(path, sizeof path, "%s/datasets", at);
    char *names = mp_text_at(file, path, error), *next = names;
    if (names == NULL)
        return 0;
    snprintf(path, sizeof path, "%s/offset", at);
    int64_t *offset = (int64_t *)mp_read(file, path, H5T_NATIVE_INT64, 2, shape, error);
    int good = offset != NULL && shape[1] - 1 == into->parts;
    if (offset != NULL && !good)
        mp_say(error, path, "has not one column a part and one more: split the mesh anew");
    if (good && (into->slices = (mp_slice *)calloc((size_t)shape[0] + 1, sizeof(mp_slice))) == NULL)
        good = (mp_say(error, path, "out of memory"), 0);
    for (int64_t i = 0; good && i < shape[0]; i++) {
        mp_slice *one = &into->slices[into->n];
        if ((one->name = mp_next_name(&next)) == NULL) {
            good = (mp_say(error, path, "lists other datasets than there are"), 0);
            break;
        }
        into->n++;
        if (strlen(at) + strlen(one->name) + 2 > MP_NAME) {
            good = (mp_say(error, path, "a name in it is too long"), 0);
            break;
        }
        snprintf(path, sizeof path, "%.60s/%.900s", at, one->name);
        good = mp_read_slice(file, bytes, path, into, offset + i * shape[1] + part, one, sha,
                             error);
    }
    free(names);
    free(offset);
    return good;
}

mp_part *mp_open_part(const char *path, int64_t parts, int64_t part, char *error)
{
    char at[64], name[MP_NAME], digest[65], expected[65] = {0};
    int64_t shape[2] = {0, 0};
    mp_sha sha = {{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                   0x1f83d9ab, 0x5be0cd19}, {0}, 0, 0};
    FILE *bytes = fopen(path, "rb");
    if (bytes == NULL)
        return mp_say(error, path, "cannot be read"), (mp_part *)NULL;
    mp_plan file = {-1};
    mp_part *made = (mp_part *)calloc(1, sizeof *made);
    int good = made != NULL && mp_check_parts_seal(bytes, path, made, error);
    if (made == NULL)
        mp_say(error, path, "out of memory");
    H5E_BEGIN_TRY {
        if (good && (file.file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT)) < 0)
            good = (mp_say(error, path, "HDF5 cannot open it"), 0);
    } H5E_END_TRY;
    snprintf(at, sizeof at, "/parts/%lld", (long long)parts);
    if (good && (!mp_exists(&file, at) || part < 0 || part >= parts))
        good = (mp_say(error, path, "is not split into so many parts, or has no such part: "
                                    "meshprep info lists them"), 0);
    if (good)
        made->parts = parts, made->own = part;
    snprintf(name, sizeof name, "%s/description", at);
    good = good && (made->words = mp_text_at(&file, name, error)) != NULL;
    good = good && mp_read_slices(&file, bytes, at, part, made, &sha, error);
    if (good) {
        snprintf(name, sizeof name, "%s/digest", at);
        uint8_t *all = (uint8_t *)mp_read(&file, name, H5T_NATIVE_UINT8, 2, shape, error);
        int digests = all != NULL && shape[0] == parts && shape[1] == 32;
        for (int i = 0; digests && i < 32; i++)
            snprintf(expected + 2 * i, 3, "%02x", all[part * 32 + i]);
        free(all);
        mp_sha_text(&sha, digest);
        if (strcmp(digest, expected) != 0)
            good = (mp_say(error, path, "damaged: the part does not match its checksum"), 0);
    }
    if (file.file >= 0)
        H5Fclose(file.file);
    fclose(bytes);
    if (!good) {
        mp_close_part(made);
        return NULL;
    }
    return made;
}

void mp_close_part(mp_part *part)
{
    for (int64_t i = 0; part != NULL && i < part->n; i++) {
        free(part->slices[i].name);
        free(part->slices[i].values);
    }
    if (part != NULL) {
        free(part->slices);
        free(part->words);
    }
    free(part);
}

static const mp_slice *mp_slice_of(const mp_part *part, const char *name, char *error)
{
    for (int64_t i = 0; i < part->n; i++)
        if (strcmp(part->slices[i].name, name) == 0)
            return &part->slices[i];
    return mp_say(error, name, "is not in the part"), (const mp_slice *)NULL;
}

const void *mp_part_array(const mp_part *part, const char *name, size_t bytes, int64_t *rows,
                          char *error)
{
    const mp_slice *one = mp_slice_of(part, name, error);
    if (one == NULL)
        return NULL;
    if (one->row_bytes != bytes)
        return mp_say(error, name, "has rows of other bytes"), (const void *)NULL;
    *rows = one->rows;
    return one->values;
}

const int32_t *mp_part_indices(const mp_part *part, const char *name, int64_t columns,
                               int64_t least, int64_t end, int64_t *rows, char *error)
{
    const int32_t *values = (const int32_t *)mp_part_array(
        part, name, (size_t)columns * sizeof *values, rows, error);
    int good = values != NULL && mp_inside(values, *rows * columns, least, end, name, error);
    return good ? values : NULL;
}

const int64_t *mp_part_offset(const mp_part *part, const char *name, int64_t end, int64_t *n,
                              char *error)
{
    const int64_t *offset = (const int64_t *)mp_part_array(part, name, sizeof *offset, n, error);
    int good = offset != NULL && mp_is_offset(offset, (*n)--, end, name, error);
    return good ? offset : NULL;
}

int mp_part_runs(const mp_part *part, const char *set, mp_runs *runs, char *error)
{
    char name[MP_NAME];
    int64_t n = 0, own = 0, copies = 0;
    snprintf(name, sizeof name, "sets/%.900s/original", set);
    const void *found = mp_part_array(part, name, 8, &own, error);
    snprintf(name, sizeof name, "sets/%.900s/copies", set);
    found = found ? mp_part_array(part, name, 8, &copies, error) : NULL;
    snprintf(name, sizeof name, "sets/%.900s/counts", set);
    const int64_t *counts =
        found ? (const int64_t *)mp_part_array(part, name, 8, &n, error) : NULL;
    if (counts == NULL)
        return 0;
    if (n != 5)
        return mp_say(error, name, "must be five numbers"), 0;
    for (int i = 0; i < 5; i++)
        if (counts[i] < 0 || counts[i] > INT64_MAX / 4)
            return mp_say(error, name, "holds a number that none can be: split the mesh anew"), 0;
    if (counts[1] > counts[2] || counts[2] != own || counts[3] + counts[4] != copies)
        return mp_say(error, name, "does not count the elements that the part has: "
                                   "split the mesh anew"), 0;
    runs->first = counts[0];
    runs->core = counts[1];
    runs->owned = counts[2];
    runs->exec = counts[3];
    runs->halo = counts[4];
    return 1;
}

int mp_part_messages(const mp_part *part, const char *set, const char *kind, mp_messages *messages,
                     char *error)
{
    char name[MP_NAME];
    mp_runs runs;
    int64_t n = 0, end, sends = strncmp(kind, "send", 4) == 0;
    messages->rows = NULL;
    if (!mp_part_runs(part, set, &runs, error))
        return 0;
    end = strcmp(kind, "receive_exec") == 0 ? runs.exec : runs.halo;
    if (sends) {
        snprintf(name, sizeof name, "sets/%.900s/%.40s/rows", set, kind);
        messages->rows = mp_part_indices(part, name, 1, 0, runs.owned, &end, error);
        if (messages->rows == NULL)
            return 0;
    }
    snprintf(name, sizeof name, "sets/%.900s/%.40s/parts", set, kind);
    messages->parts =
        mp_part_indices(part, name, 1, 0, part->parts, &messages->neighbours, error);
    snprintf(name, sizeof name, "sets/%.900s/%.40s/offset", set, kind);
    messages->offset =
        messages->parts ? mp_part_offset(part, name, end, &n, error) : NULL;
    if (messages->offset != NULL && n != messages->neighbours)
        return mp_say(error, name, "has not one entry a neighbour and one more"), 0;
    /* A part talks to others alone, once with each of them, and says something. */
    for (int64_t i = 0; messages->offset != NULL && i < n; i++)
        if (messages->parts[i] == part->own || messages->offset[i + 1] <= messages->offset[i] ||
            (i > 0 && messages->parts[i] <= messages->parts[i - 1]))
            return mp_say(error, name, "is of messages that none can be: split the mesh anew"), 0;
    return messages->offset != NULL;
}

/* Whether an array has a row for each element that the part has. */
static int mp_has_rows(const mp_part *part, const char *set, const char *name, int64_t rows,
                       char *error)
{
    mp_runs runs;
    if (!mp_part_runs(part, set, &runs, error))
        return 0;
    if (runs.owned + runs.exec + runs.halo != rows)
        return mp_say(error, name, "has not one row an element: split the mesh anew"), 0;
    return 1;
}

const double *mp_part_coordinates(const mp_part *part, const char *set, int64_t *dim, char *error)
{
    char name[MP_NAME];
    snprintf(name, sizeof name, "coordinates/%.900s", set);
    const mp_slice *one = mp_slice_of(part, name, error);
    if (one == NULL || !mp_has_rows(part, set, name, one->rows, error))
        return NULL;
    *dim = (int64_t)(one->row_bytes / sizeof(double));
    if ((*dim != 2 && *dim != 3) || one->row_bytes % sizeof(double) != 0)
        return mp_say(error, name, "has not two or three columns"), (const double *)NULL;
    return (const double *)one->values;
}

const int64_t *mp_part_tag(const mp_part *part, const char *set, const char *tag, int64_t *size,
                           char *error)
{
    char name[MP_NAME];
    snprintf(name, sizeof name, "tags/%.450s/%.450s", set, tag);
    const int64_t *found = (const int64_t *)mp_part_array(part, name, sizeof *found, size, error);
    return found != NULL && mp_has_rows(part, set, name, *size, error) ? found : NULL;
}

/* Behind a JSON value; NULL where it does not end. */
static char *mp_behind(char *at)
{
    int depth = 0;
    do {
        at += strspn(at, " ,:");
        if (*at == '"') {
            for (at++; *at != 0 && *at != '"'; at++)
                at += *at == '\\' && at[1] != 0;
            at += *at == '"';
        } else if (*at != 0 && strchr("{}[]", *at) != NULL)
            depth += strchr("{[", *at++) != NULL ? 1 : -1;
        else
            at += strcspn(at, " ,:{}[]\"");
    } while (depth > 0 && *at != 0);
    return depth == 0 ? at : NULL;
}

/* The next key of a JSON object, which is cut out of `at`, and where its value begins; NULL at the
 * end. `at` goes behind the value; free() the key. */
static char *mp_next_key(char **at, char **value)
{
    *at += strspn(*at, " ,{");
    char *key = **at == '"' ? mp_next_name(at) : NULL;
    if (key == NULL)
        return NULL;
    *value = *at + strspn(*at, " :");
    if ((*at = mp_behind(*value)) != NULL)
        return key;
    free(key);
    return NULL;
}

/* The value of a key of a JSON object; NULL where there is none. */
static char *mp_value(char *at, const char *wanted)
{
    char *key, *value = NULL;
    int found = 0;
    while (at != NULL && !found && (key = mp_next_key(&at, &value)) != NULL) {
        found = strcmp(key, wanted) == 0;
        free(key);
    }
    return found ? value : NULL;
}

int mp_part_group(const mp_part *part, const char *set, const char *tag, const char *name,
                  int64_t *number, char *error)
{
    size_t size = strlen(part->words) + 1;
    char *words = (char *)malloc(size), *key, *value, *text;
    int found = 0;
    if (words == NULL)
        return mp_say(error, name, "out of memory"), 0;
    memcpy(words, part->words, size); /* names are cut out of it */
    char *at = mp_value(words, "group_names");
    at = at ? mp_value(at, set) : NULL;
    at = at ? mp_value(at, tag) : NULL;
    while (at != NULL && (key = mp_next_key(&at, &value)) != NULL) {
        if (*value == '"' && (text = mp_next_name(&value)) != NULL) {
            if (strcmp(text, name) == 0 && found++ == 0)
                *number = strtoll(key, NULL, 10);
            free(text);
        }
        free(key);
    }
    free(words);
    if (found != 1)
        mp_say(error, name, found ? "is the name of several groups: compare their numbers"
                                  : "is not the name of a group");
    return found == 1;
}

int64_t *mp_part_members(const mp_part *part, const char *set, const char *tag, int64_t group,
                         int64_t *size, char *error)
{
    char name[MP_NAME], none[MP_ERROR];
    int64_t n, rows = 0;
    const int64_t *further = NULL, *first = mp_part_tag(part, set, tag, &n, error);
    if (first == NULL)
        return NULL;
    snprintf(name, sizeof name, "further_groups/%.450s/%.450s", set, tag);
    if (mp_slice_of(part, name, none) != NULL) {
        further = (const int64_t *)mp_part_array(part, name, 2 * sizeof *further, &rows, error);
        if (further == NULL)
            return NULL;
    }
    int64_t *found = (int64_t *)malloc((size_t)n * sizeof *found + 1);
    if (found == NULL)
        return mp_say(error, name, "out of memory"), (int64_t *)NULL;
    memcpy(found, first, (size_t)n * sizeof *found);
    mp_keep_members(found, n, further, rows, group, size);
    return found;
}

#endif /* MESHPREP_PARTS_IMPLEMENTATION */
