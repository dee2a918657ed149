// Part of meshprep.hpp: the arguments of a call against those of the loop in the plan.
#ifndef MESHPREP_CHECK_HPP
#define MESHPREP_CHECK_HPP

namespace meshprep {

// Reads the plan's JSON list of arguments: flat objects of texts, numbers and lists of numbers.
class ArgumentReader {
 public:
  explicit ArgumentReader(const std::string& json) : text_(json) {}

  std::vector<Described> list() {
    std::vector<Described> found;
    for (expect('['); !accept(']'); accept(',')) object(found);
    return found;
  }

 private:
  void object(std::vector<Described>& found) {
    Described one;
    std::vector<std::int64_t> columns;
    for (expect('{'); !accept('}'); accept(',')) {
      const std::string key = string();
      if (key == "mat")
        throw Error("par_loop has no matrices: add to one as stiffness.c does, by mp_read_places");
      expect(':');
      if (key == "index") {
        for (expect('['); !accept(']'); accept(',')) columns.push_back(number());
      } else if (key == "dim") {
        one.dim = number();
      } else if (key == "full") {
        one.full = peek() == 't';
        while (std::isalpha(static_cast<unsigned char>(peek()))) ++at_;
      } else {
        one.is_global |= key == "global";
        std::string& to = key == "map"      ? one.map
                          : key == "dtype"  ? one.dtype
                          : key == "access" ? one.access
                                            : one.name;
        to = string();
      }
    }
    if (columns.empty()) columns.push_back(0);
    for (const std::int64_t column : columns) {
      one.column = column;
      found.push_back(one);
    }
  }

  std::string string() {
    std::string found;
    for (expect('"'); peek() != '"'; ++at_) {
      if (peek() == '\\' && text_.compare(at_, 2, "\\u") == 0)
        add_utf8(found);
      else if (peek() == '\\')
        found += text_[++at_];
      else
        found += text_[at_];
    }
    ++at_;
    return found;
  }

  void add_utf8(std::string& to) {
    unsigned code = unsigned(std::stoul(text_.substr(at_ + 2, 4), nullptr, 16));
    at_ += 5;
    if (code >> 10 == 0x36 && text_.compare(at_ + 1, 2, "\\u") == 0) {
      const unsigned low = unsigned(std::stoul(text_.substr(at_ + 3, 4), nullptr, 16));
      code = 0x10000 + ((code & 0x3FF) << 10) + (low & 0x3FF);
      at_ += 6;
    }
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    constexpr unsigned leads[] = {0, 0xC0, 0xE0, 0xF0};
    to += char(leads[more] | code >> 6 * more);
    for (int i = more - 1; i >= 0; --i) to += char(0x80 | (code >> 6 * i & 0x3F));
  }

  std::int64_t number() {
    std::size_t used = 0;
    peek();
    const std::int64_t value = std::stoll(text_.substr(at_, 20), &used);
    at_ += used;
    return value;
  }

  char peek() const {
    if (at_ >= text_.size()) throw Error("the plan's list of arguments ends early: make it anew");
    return text_[at_];
  }

  bool accept(char c) {
    while (peek() == ' ') ++at_;
    if (text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) throw Error("the plan's list of arguments cannot be read: make it anew");
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

inline std::vector<Described> described(const std::string& json) try {
  return ArgumentReader(json).list();
} catch (const std::logic_error&) {  // of numbers that are none
  throw Error("the plan's list of arguments cannot be read: make it anew");
}

// What is compared, word for word: of the call, and of the plan.
inline void same(const std::string& where, const char* what, const std::string& given,
                 const std::string& planned) {
  if (given != planned)
    throw Error(where + ": " + what + " is '" + given + "', but '" + planned + "' in the plan");
}

// One for each kind of argument: name, map and column can still differ.
template <class A>
inline constexpr char kind_of = 0;

// Check one argument against the plan, and keep what it is, for later calls.
template <class A>
void check_argument(Plan& plan, const Loop& loop, std::size_t position, const A& arg) {
  const Described& planned = loop.arguments[position];
  std::string where = "loop '" + loop.name + "', argument " + std::to_string(position + 1);
  same(where, "the name", arg.name, planned.name);
  where += " ('" + planned.name + "')";
  same(where, "the kind", A::reach == Reach::global ? "global" : "dat",
       planned.is_global ? "global" : "dat");
  same(where, "the map", arg.map, planned.map);
  same(where, "the column", std::to_string(arg.column), std::to_string(planned.column));
  same(where, "the access", name_of(A::access), planned.access);
  same(where, "the dim", std::to_string(A::Dim), std::to_string(planned.dim));
  same(where, "the type", dtype_of<typename A::Value>(), planned.dtype);
  planned.values = A::Dim;
  if constexpr (A::reach == Reach::mapped) {
    const mp_map& map = *plan.map(arg.map).data;
    same(where, "the set that the map goes from", loop.over, plan.map(arg.map).from_set);
    if (arg.column < 0 || arg.column >= map.arity)
      throw Error(where + ": the map has " + std::to_string(map.arity) + " columns in the plan");
    planned.table = map.table + arg.column;
    planned.arity = map.arity;
  }
  if constexpr (A::reach != Reach::global) {
    const std::string& on = A::reach == Reach::mapped ? plan.map(arg.map).to_set : loop.over;
    planned.values = plan.set(on).size * A::Dim;
    same(where, "the number of values", std::to_string(arg.size), std::to_string(planned.values));
  }
  planned.kind = &kind_of<A>;
}

// Complete one argument, which need not be looked at again where it is as in an earlier call.
template <class A>
void complete_argument(Plan& plan, const Loop& loop, std::size_t& position, A& arg) {
  const Described& planned = loop.arguments[position];
  if (planned.kind != &kind_of<A> || arg.column != planned.column || arg.size != planned.values ||
      planned.name != arg.name || planned.map != arg.map)
    check_argument(plan, loop, position, arg);
  arg.full = planned.full;
  arg.table = planned.table;
  arg.arity = planned.arity;
  ++position;
}

// Where the values of an argument lie.
struct Memory {
  template <class A>
  explicit Memory(const A& arg)
      : begin(reinterpret_cast<std::uintptr_t>(arg.values)),
        end(begin + std::uintptr_t(arg.size) * sizeof(typename A::Value)),
        written(A::access != Access::read) {}
  std::uintptr_t begin, end;
  bool written;
};

// One dat has one array, and what is written shares none with another: elements run out of order.
template <std::size_t N>
void check_memory(const Loop& loop, const std::array<Memory, N>& memory) {
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t k = 0; k < N; ++k) {
      const Described &a = loop.arguments[i], &b = loop.arguments[k];
      if (a.first == b.first && memory[i].begin != memory[k].begin)
        throw Error("loop '" + loop.name + "': argument '" + a.name +
                    "' stands twice, with two arrays: give one");
      if (a.first != b.first && memory[i].written && memory[i].begin < memory[k].end &&
          memory[k].begin < memory[i].end)
        throw Error("loop '" + loop.name + "': arguments '" + a.name + "' and '" + b.name +
                    "' share memory and '" + a.name + "' is written: give separate arrays");
    }
}

// Check all, and complete them; returns the number of elements.
template <class... Args>
std::int64_t check(Plan& plan, const Loop& loop, Args&... args) {
  if (sizeof...(args) != loop.arguments.size())
    same("loop '" + loop.name + "'", "the number of arguments", std::to_string(sizeof...(args)),
         std::to_string(loop.arguments.size()));
  std::size_t position = 0;
  (complete_argument(plan, loop, position, args), ...);
  check_memory(loop, std::array<Memory, sizeof...(Args)>{Memory(args)...});
  if (loop.size < 0) loop.size = plan.set(loop.over).size;
  return loop.size;
}

// The ranges of a loop, where the plan has none: it is older, or other blocks were chosen.
inline Ranges build_ranges(Plan& plan, const Loop& loop) {
  std::map<std::string, WrittenSet> written;
  for (const Described& a : loop.arguments) {
    if (a.map.empty() || a.access == "read") continue;
    const mp_map& map = *plan.map(a.map).data;
    WrittenSet& set = written[plan.map(a.map).to_set];
    set.points = map.to_size;
    set.columns.push_back({map.table + a.column, map.arity});
  }
  std::vector<WrittenSet> sets;
  for (const auto& [name, set] : written) sets.push_back(set);
  return make_ranges(plan.set(loop.over).size, loop.blocks.get(), sets);
}

// The ranges in which threads run a loop, read or made once.
inline const Ranges& ranges_of(Plan& plan, const Loop& loop) {
  if (loop.ranges) return *loop.ranges;
  char error[MP_ERROR] = "";
  std::unique_ptr<mp_ranges, decltype(&mp_free_ranges)> r(nullptr, mp_free_ranges);
  Ranges found;
  if (loop.usual && mp_has_ranges(plan.file(), loop.name.c_str())) {
    r.reset(mp_read_ranges(plan.file(), loop.name.c_str(), error));
    if (!r) throw Error(error);
    const std::int64_t n = r->n_ranges;
    found.offset.assign(r->offset, r->offset + n + 1);
    found.order.assign(r->order, r->order + n);
    found.wait_offset.assign(r->wait_offset, r->wait_offset + n + 1);
    found.waits.assign(r->waits, r->waits + r->wait_offset[n]);
  } else {
    found = build_ranges(plan, loop);
  }
  find_runs(found);
  loop.ranges = std::make_unique<const Ranges>(std::move(found));
  return *loop.ranges;
}

}  // namespace meshprep

#endif  // MESHPREP_CHECK_HPP
