// The rank that did not take part, found by what the others say in the store.
//
// A rank whose time ran out writes whom it waits for, and a mark that asks the others to do the same; they
// look for the mark whenever a wait makes them sleep. After a grace, a rank that is waited for and has
// written nothing is the one that does not take part: those that wait for it directly say so, and the rest
// take that over from them. Where nobody says so, each follows who waits for whom itself: ranks in a circle
// all wait, so that either one came late or a message is lost.
//
// Costs nothing until a rank's time runs out, then four requests to the store per rank.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "runtime/bootstrap/store.h"
#include "runtime/exec/accuser.h"

namespace tern {

class StoreAccuser final : public Accuser {
 public:
  /// key: of the store, the communicator's. The store outlives the accuser.
  StoreAccuser(Store& store, std::string key);

  bool is_asked() const override { return asked_->is_set(); }
  void ask(const Wait& wait) override;
  std::optional<Error> answer() override;

 private:
  std::string word_key(int rank) const;
  Error follow() const;

  Store& store_;
  const std::string key_;
  std::shared_ptr<const Watch> asked_;
  Wait own_;
  std::shared_ptr<const Watch> own_word_, peers_word_;
  Clock::time_point since_;
  Clock::duration grace_{};
};

/// The error when the last of the waits is for a rank that says nothing.
Error silent(const Wait& witness);

/// The error when the last of the waits is for the rank of the first: the one that came when the others had
/// long waited, else a lost message.
Error circle(std::span<const Wait> waits);

}  // namespace tern
