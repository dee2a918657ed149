// Reads all of each plan and each file of parts that it is given, and runs over it: every index
// that a reader lets through is used. Prints a line a file: "used", or why it is refused.
#define MESHPREP_PLAN_IMPLEMENTATION
#define MESHPREP_PARTS_IMPLEMENTATION
#include "meshprep_parts.h"
#include "meshprep.hpp"
#include <cstdio>
#include <cstdlib>

using Values = std::vector<std::int64_t>;

template <class Found>
Found* good(Found* found, const char* error) {
  if (!found) throw meshprep::Error(error);
  return found;
}

void good(int found, const char* error) {
  if (!found) throw meshprep::Error(error);
}

template <class T>
using Held = std::unique_ptr<T, void (*)(T*)>;

template <class T>
Held<T> held(T* found, void (*release)(T*), const char* error) {
  return {good(found, error), release};
}

template <class T>
void drop(T* values) {
  std::free(values);
}

// The blocks of a loop as stiffness.c and a kernel with staging run them.
std::int64_t run_blocks(mp_plan* plan, const char* name, const char* map_name, const char* set) {
  char e[MP_ERROR] = "";
  const auto s = held(mp_read_set(plan, set, e), mp_free_set, e);
  const auto map = held(mp_read_map(plan, map_name, e), mp_free_map, e);
  const auto loop = held(mp_read_loop(plan, name, nullptr, e), mp_free_loop, e);
  const auto g = held(mp_read_staging(plan, name, nullptr, set, e), mp_free_staging, e);
  const auto local = held(mp_read_local(plan, name, nullptr, map_name, e), drop<std::uint16_t>, e);
  if (map->to_size != s->size || map->size != loop->size) throw meshprep::Error("other sets");
  Values given(std::size_t(s->size), 1), values(given), staged(std::size_t(g->loads));
  mp_apply(s.get(), given.data(), values.data(), 8);
  mp_restore(s.get(), values.data(), given.data(), 8);
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < g->loads; ++i) staged[i] = values[g->points[i]] + g->exclusive[i];
  for (std::int64_t c = 0; c < loop->n_block_colours; ++c)
    for (auto k = loop->block_colour_offset[c]; k < loop->block_colour_offset[c + 1]; ++k) {
      const auto b = loop->block_order[k];
      Values of_colour(std::size_t(loop->thread_colours[b]));
      for (auto p = loop->block_offset[b]; p < loop->block_offset[b + 1]; ++p) {
        ++of_colour[loop->thread_colour[p]];
        for (std::int64_t j = 0; j < map->arity; ++j) {
          sum += values[map->table[mp_element(loop.get(), p) * map->arity + j]]++;
          sum += staged[g->point_offset[b] + local.get()[j * loop->size + p]];
        }
      }
    }
  return sum;
}

// The ranges of a loop, each after those that it waits for, with coordinates read besides.
std::int64_t run_ranges(mp_plan* plan, const char* name, const char* set) {
  char e[MP_ERROR] = "";
  std::int64_t size = 0, dim = 0, sum = 0;
  const auto loop = held(mp_read_loop(plan, name, nullptr, e), mp_free_loop, e);
  const auto r = held(mp_read_ranges(plan, name, e), mp_free_ranges, e);
  const auto x = held(mp_read_coordinates(plan, set, &size, &dim, e), drop<double>, e);
  Values seen(std::size_t(loop->size)), done(std::size_t(r->n_ranges));
  for (std::int64_t i = 0; i < r->n_ranges; ++i) {
    for (auto k = r->wait_offset[i]; k < r->wait_offset[i + 1]; ++k)
      if (!done[r->waits[k]]) std::abort();
    for (auto p = r->offset[r->order[i]]; p < r->offset[r->order[i] + 1]; ++p)
      sum += ++seen[mp_element(loop.get(), p)];
    done[i] = 1;
  }
  for (std::int64_t i = 0; i < size * dim; ++i) sum += x.get()[i] > 0.5;
  return sum;
}

std::int64_t assemble(mp_plan* plan) {
  char e[MP_ERROR] = "";
  const auto m = held(mp_read_matrix(plan, "K", e), mp_free_matrix, e);
  const auto place = held(mp_read_places(plan, "K", "stiffness", e), mp_free_places, e);
  const auto nodes = held(mp_read_set(plan, "nodes", e), mp_free_set, e);
  Values values(std::size_t(m->n_nonzeros)), rows(std::size_t(m->n_rows));
  for (std::int64_t i = 0; i < place->size * place->entries; ++i)
    if (place->table[i] >= 0) ++values[place->table[i]];
  std::int64_t most = 0, sum = 0;
  for (std::int64_t i = 0; i < m->column_set_size; ++i)
    most = std::max<std::int64_t>(most, m->column_of[i] + 1);
  Values x(std::size_t(most), 1);
  for (std::int64_t i = 0; i < m->n_rows; ++i)
    for (auto j = m->row_ptr[i]; j < m->row_ptr[i + 1]; ++j) rows[i] += values[j] * x[m->columns[j]];
  for (std::int64_t i = 0; i < m->row_set_size; ++i)
    if (m->row_of[i] >= 0) sum += rows[m->row_of[i]];
  return sum;
}

std::int64_t tags(mp_plan* plan) {
  char e[MP_ERROR] = "";
  std::int64_t n = 0, members = 0, number = 0, sum = 0;
  const auto tag = held(mp_read_tag(plan, "cells", "physical", &n, e), drop<std::int64_t>, e);
  const auto in =
      held(mp_read_members(plan, "cells", "physical", 1, &members, e), drop<std::int64_t>, e);
  good(mp_read_group(plan, "cells", "physical", "one", &number, e), e);
  for (std::int64_t i = 0; i < members; ++i) sum += tag.get()[in.get()[i]] == number;
  return sum;
}

struct Flux {
  template <class T, class R>
  void operator()(T t1, T t2, R r1, R r2) const {
    r1[0] += t2[0] - t1[0];
    r2[0] -= t2[0] - t1[0];
  }
};

// par_loop over a copy of the plan of its own, in the order of the set and in blocks.
double par_loops(const char* path) {
  using meshprep::arg, meshprep::read, meshprep::inc;
  meshprep::Plan plan(path);
  const std::size_t n = std::size_t(plan.set("cells").size);
  std::vector<double> tv(n, 1.0), rv(n, 0.0);
  meshprep::Dat<double> t("t", tv), r("r", rv);
  const char* map = "edges->cells";
  for (int run = 0; run < 2; ++run) {
    const auto call = [&](auto loop) {
      loop(arg(t, map, 0, read), arg(t, map, 1, read), arg(r, map, 0, inc), arg(r, map, 1, inc));
    };
    if (run == 0)
      call([&](auto... a) {
        meshprep::par_loop<meshprep::Run::sequential>(plan, "flux", Flux(), a...);
      });
    else
      call([&](auto... a) {
        meshprep::par_loop<meshprep::Run::openmp>(plan, "flux", Flux(), a...);
      });
  }
  return rv.empty() ? 0.0 : rv[0];
}

std::int64_t use_plan(const char* path) {
  char e[MP_ERROR] = "";
  const auto plan = held(mp_open(path, e), mp_close, e);
  std::string why;
  std::int64_t sum = 0;
  const auto use = [&](auto part) {
    try {
      sum += std::int64_t(part());
    } catch (const meshprep::Error& error) {
      why = error.what();
    }
  };
  use([&] { return run_blocks(plan.get(), "flux", "edges->cells", "cells"); });
  use([&] { return run_blocks(plan.get(), "stiffness", "cells->nodes", "nodes"); });
  use([&] { return run_ranges(plan.get(), "flux", "cells"); });
  use([&] { return assemble(plan.get()); });
  use([&] { return tags(plan.get()); });
  use([&] { return par_loops(path); });
  if (!why.empty()) throw meshprep::Error(why);
  return sum;
}

std::int64_t use_part(const char* path, std::int64_t parts, std::int64_t part) {
  char e[MP_ERROR] = "";
  const auto p = held(mp_open_part(path, parts, part, e), mp_close_part, e);
  mp_runs edges, cells;
  good(mp_part_runs(p.get(), "edges", &edges, e), e);
  good(mp_part_runs(p.get(), "cells", &cells, e), e);
  Values values(std::size_t(cells.owned + cells.exec + cells.halo), 1);
  std::int64_t sum = 0, rows = 0, blocks = 0, n = 0;
  for (const char* kind : {"send_exec", "send_halo", "receive_exec", "receive_halo"}) {
    mp_messages m;
    good(mp_part_messages(p.get(), "cells", kind, &m, e), e);
    const std::int64_t begin = cells.owned + (kind[8] == 'h' ? cells.exec : 0);
    for (std::int64_t i = 0; i < m.neighbours; ++i)
      for (auto j = m.offset[i]; j < m.offset[i + 1]; ++j)
        sum += values[m.rows ? m.rows[j] : begin + j];
  }
  const std::int32_t* table = good(
      mp_part_indices(p.get(), "maps/edges->cells/table", 2, 0, std::int64_t(values.size()), &rows,
                      e),
      e);
  if (rows != edges.owned + edges.exec) throw meshprep::Error("other rows");
  for (std::int64_t i = 0; i < 2 * rows; ++i) ++values[table[i]];
  const std::string at = "loops/flux/s16/";
  const std::int64_t* offset =
      good(mp_part_offset(p.get(), (at + "block_offset").c_str(), rows, &blocks, e), e);
  const std::int32_t* order =
      good(mp_part_indices(p.get(), (at + "block_order").c_str(), 1, 0, blocks, &n, e), e);
  for (std::int64_t k = 0; k < n; ++k)
    for (auto i = offset[order[k]]; i < offset[order[k] + 1]; ++i) sum += values[table[2 * i]];
  std::int64_t dim = 0, group = 0;
  const double* x = good(mp_part_coordinates(p.get(), "nodes", &dim, e), e);
  mp_runs nodes;
  good(mp_part_runs(p.get(), "nodes", &nodes, e), e);
  for (std::int64_t i = 0; i < dim * (nodes.owned + nodes.exec + nodes.halo); ++i) sum += x[i] > 0;
  good(mp_part_group(p.get(), "cells", "physical", "domain", &group, e), e);
  const Values::size_type before = values.size();
  std::int64_t* own = good(mp_part_members(p.get(), "cells", "physical", group, &n, e), e);
  const std::unique_ptr<std::int64_t, void (*)(void*)> freed(own, std::free);
  for (std::int64_t i = 0; i < n; ++i) sum += values[std::size_t(own[i])] + (before == 0);
  return sum;
}

std::int64_t use_parts(const char* path) {
  std::int64_t sum = 0;
  for (std::int64_t part = 0; part < 3; ++part) sum += use_part(path, 3, part);
  return sum;
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) try {
      const std::string path = argv[i];
      const bool is_plan = path.find(".plan.h5") != std::string::npos;
      const std::int64_t sum = is_plan ? use_plan(argv[i]) : use_parts(argv[i]);
      std::printf("used %lld\n", static_cast<long long>(sum));
    } catch (const meshprep::Error& error) {
      std::printf("%s\n", error.what());
    }
}
