#include "runtime/plan/rules.h"

#include <algorithm>

#include "runtime/base/nearest.h"
#include "runtime/base/size.h"

namespace tern {
namespace {

// A piece of the spec that knows where it stands.
struct Piece {
  std::string_view text;
  size_t at = 0;  // offset in the spec

  /// Cuts off what is before `separator`; the whole piece when it is not there. Returns whether it was there.
  bool cut(char separator, Piece& before) {
    const size_t end = text.find(separator);
    before = {text.substr(0, end), at};
    if (end == std::string_view::npos) return false;
    *this = {text.substr(end + 1), at + end + 1};
    return true;
  }
};

Error wrong(const Piece& piece, std::string_view what) {
  return error(Code::kInvalidArgument, "algorithm rules, character {}, \"{}\": {}", piece.at + 1, piece.text,
               what);
}

Result<uint64_t> read_size(const Piece& piece) {
  const auto size = parse_size(piece.text);
  if (!size.ok()) return wrong(piece, size.error().message);
  return *size;
}

Result<const Algorithm*> read_algorithm(const Piece& piece) {
  const auto found = find_algorithm(piece.text);
  if (found.ok()) return *found;
  std::vector<std::string_view> known;
  for (const Algorithm& algorithm : algorithms()) known.push_back(algorithm.name);
  return wrong(piece, fmt::format("there is no such algorithm; {}known: {}", did_you_mean(piece.text, known),
                                  fmt::join(known, ", ")));
}

Result<AlgorithmChoice> read_choice(Piece piece) {
  AlgorithmChoice choice;
  Piece name;
  const bool has_segment = piece.cut('@', name);
  TERN_ASSIGN(choice.algorithm, read_algorithm(name));
  if (has_segment) {
    TERN_ASSIGN(const uint64_t size, read_size(piece));
    choice.segment_bytes = size;
  }
  return choice;
}

Result<AlgorithmRule> read_everywhere(const Piece& piece) {
  TERN_ASSIGN(const AlgorithmChoice choice, read_choice(piece));
  return AlgorithmRule{0, kInfiniteSize, choice, to_string(choice)};
}

Result<AlgorithmRule> read_range(Piece piece) {
  const Piece whole = piece;
  Piece from;
  Piece to;
  if (!piece.cut('-', from) || !piece.cut('=', to))
    return wrong(whole, "a range is written FROM-TO=ALGORITHM, for instance 64k-inf=ring");
  TERN_ASSIGN(AlgorithmRule rule, read_everywhere(piece));
  TERN_ASSIGN(rule.from, read_size(from));
  TERN_ASSIGN(rule.to, read_size(to));
  if (rule.from >= rule.to) return wrong(whole, "the range is empty");
  return rule;
}

class Parser {
 public:
  Status read_entry(Piece entry);
  AlgorithmRules rules;

 private:
  Status add(Collective collective, const AlgorithmRule& rule, const Piece& at);
};

Status Parser::read_entry(Piece entry) {
  Piece head;
  if (!entry.cut(':', head)) {
    TERN_ASSIGN(const AlgorithmRule rule, read_everywhere(entry));
    for (int c = 0; c < kNumCollectives; ++c)
      if (rule.choice.algorithm->supports({.collective = static_cast<Collective>(c)}))
        TERN_TRY(add(static_cast<Collective>(c), rule, entry));
    return {};
  }
  const auto collective = parse_collective(head.text);
  if (!collective.ok()) return wrong(head, collective.error().message);
  for (bool more = true; more;) {
    Piece part;
    more = entry.cut(',', part);
    const bool is_range = part.text.find('=') != std::string_view::npos;
    TERN_ASSIGN(const AlgorithmRule rule, is_range ? read_range(part) : read_everywhere(part));
    TERN_TRY(add(*collective, rule, part));
  }
  return {};
}

Status Parser::add(Collective collective, const AlgorithmRule& rule, const Piece& at) {
  if (!rule.choice.algorithm->supports({.collective = collective}))
    return wrong(at, fmt::format("{} has no {}", rule.choice.algorithm->name, name(collective)));
  auto& of = rules.of[static_cast<size_t>(collective)];
  for (const AlgorithmRule& other : of)
    if (rule.from < other.to && other.from < rule.to)
      return wrong(at, fmt::format("overlaps {}-{} of {}", format_size(other.from), format_size(other.to),
                                   name(collective)));
  of.insert(std::upper_bound(of.begin(), of.end(), rule,
                             [](const AlgorithmRule& a, const AlgorithmRule& b) { return a.from < b.from; }),
            rule);
  return {};
}

}  // namespace

std::string_view AlgorithmRules::find(Collective collective, size_t n_bytes) const {
  for (const AlgorithmRule& rule : of[static_cast<size_t>(collective)])
    if (rule.from <= n_bytes && n_bytes < rule.to) return rule.text;
  return {};
}

Result<AlgorithmChoice> parse_algorithm_choice(std::string_view text) {
  return read_choice({text});
}

std::string to_string(const AlgorithmChoice& choice) {
  if (!choice.segment_bytes) return std::string(choice.algorithm->name);
  return fmt::format("{}@{}", choice.algorithm->name, format_size(*choice.segment_bytes));
}

bool is_rules(std::string_view text) {
  return text.find_first_of(":=;") != std::string_view::npos;
}

Result<AlgorithmRules> parse_algorithm_rules(std::string_view spec) {
  Parser parser;
  if (spec.empty()) return parser.rules;
  Piece rest{spec};
  for (bool more = true; more;) {
    Piece entry;
    more = rest.cut(';', entry);
    TERN_TRY(parser.read_entry(entry));
  }
  return std::move(parser.rules);
}

std::string to_string(const AlgorithmRules& rules) {
  std::string text;
  for (int c = 0; c < kNumCollectives; ++c) {
    const auto& of = rules.of[static_cast<size_t>(c)];
    if (of.empty()) continue;
    if (!text.empty()) text += ';';
    text += name(static_cast<Collective>(c));
    char separator = ':';
    for (const AlgorithmRule& rule : of) {
      text += fmt::format("{}{}-{}={}", separator, format_size(rule.from), format_size(rule.to), rule.text);
      separator = ',';
    }
  }
  return text;
}

}  // namespace tern
