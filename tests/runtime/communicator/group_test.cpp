// Messages, and several operations started as one.
#include <gtest/gtest.h>

#include "tests/ranks.h"

namespace tern {
namespace {

using testing::on_ranks;
using testing::quick_config;

ConstView view(const std::vector<float>& x) {
  return std::span<const float>(x);
}
View view(std::vector<float>& x) {
  return std::span<float>(x);
}

TEST(Messages, ArriveInTheOrderSentWhateverTheirSize) {
  on_ranks(2, quick_config(), [](Communicator& comm) {
    for (const size_t n : {0, 1, 1000, 300000}) {
      std::vector<float> first(n, 1), second(n, 2);
      if (comm.rank() == 0) {
        ASSERT_TRUE(comm.send(view(first), 1).ok());
        ASSERT_TRUE(comm.send(view(second), 1).ok());
      } else {
        std::vector<float> a(n), b(n);
        ASSERT_TRUE(comm.recv(view(a), 0).ok());
        ASSERT_TRUE(comm.recv(view(b), 0).ok());
        EXPECT_EQ(a, first);
        EXPECT_EQ(b, second);
      }
    }
  });
}

TEST(Groups, ExchangeWithEveryRankAndThemselvesAtOnce) {
  for (const int p : {1, 2, 3, 5}) {
    on_ranks(p, quick_config(), [p](Communicator& comm) {
      // Twice: the second time the plan is there already.
      for (int turn = 0; turn < 2; ++turn) {
        std::vector<std::vector<float>> sent, received;
        for (int r = 0; r < p; ++r) {
          sent.emplace_back(1000 * static_cast<size_t>(r) + 5,
                            static_cast<float>(10 * comm.rank() + r + turn));
          received.emplace_back(1000 * static_cast<size_t>(comm.rank()) + 5);
        }
        std::vector<Operation> group;
        // Half of the ranks list their receives first: the order inside a group must not matter.
        for (int r = 0; r < p; ++r) {
          const auto i = static_cast<size_t>(r);
          const Operation both[] = {ops::send(view(sent[i]), r), ops::recv(view(received[i]), r)};
          group.push_back(both[comm.rank() % 2]);
          group.push_back(both[1 - comm.rank() % 2]);
        }
        const Status status = comm.run_group(group);
        ASSERT_TRUE(status.ok()) << status.error().to_string();
        for (int r = 0; r < p; ++r)
          for (const float x : received[static_cast<size_t>(r)])
            ASSERT_EQ(x, static_cast<float>(10 * r + comm.rank() + turn)) << "p=" << p << " from " << r;
      }
    });
  }
}

TEST(Groups, FuseSmallSumsAndGiveWhatTheyGiveAlone) {
  on_ranks(4, quick_config(), [](Communicator& comm) {
    std::vector<std::vector<float>> data;
    std::vector<Operation> group;
    for (size_t k = 0; k < 24; ++k) {
      const bool is_large = k == 11;
      data.emplace_back(is_large ? 500000 : 3 * k, static_cast<float>(comm.rank()) + static_cast<float>(k));
    }
    for (size_t k = 0; k < data.size(); ++k)
      group.push_back(ops::all_reduce(view(data[k]), view(data[k]), k % 7 == 6 ? Op::kMax : Op::kSum));
    ASSERT_TRUE(comm.run_group(group).ok());
    for (size_t k = 0; k < data.size(); ++k) {
      const auto fk = static_cast<float>(k);
      for (const float x : data[k]) ASSERT_EQ(x, k % 7 == 6 ? 3 + fk : 6 + 4 * fk) << "call " << k;
    }
    const size_t together = comm.last_report().bytes_on_wire;
    std::vector<float> x(8, 1);
    ASSERT_TRUE(comm.all_reduce(view(x), view(x), Op::kSum).ok());
    EXPECT_GT(together, comm.last_report().bytes_on_wire) << "the report counts every call of the group";
  });
}

TEST(Groups, StartedWithoutWaitingKeepTheirCounts) {
  on_ranks(3, quick_config(), [](Communicator& comm) {
    std::vector<float> own(static_cast<size_t>(comm.rank()) + 1, static_cast<float>(comm.rank()));
    std::vector<float> whole(6), x(100, 1), got(4);
    const int next = (comm.rank() + 1) % 3;
    Result<Work> work = [&] {
      const std::vector<size_t> counts = {1, 2, 3};  // gone when the call runs
      const std::vector<float> nothing;
      const Operation group[] = {ops::uneven(ops::all_gather(view(own), view(whole)), counts),
                                 ops::all_reduce(view(x), view(x), Op::kSum),
                                 ops::send(ConstView(x.data(), 0, Dtype::kFloat32), next),
                                 ops::recv(View(got.data(), 0, Dtype::kFloat32), (comm.rank() + 2) % 3)};
      return comm.start_group(group);
    }();
    ASSERT_TRUE(work.ok()) << work.error().to_string();
    const Status status = work->wait();
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    EXPECT_EQ(whole, (std::vector<float>{0, 1, 1, 2, 2, 2}));
    for (const float v : x) ASSERT_EQ(v, 3.0F);
  });
}

TEST(Groups, WithMessagesOfDifferentSizesAreAMismatch) {
  on_ranks(2, quick_config(), [](Communicator& comm) {
    std::vector<float> x(10);
    const Status status = comm.rank() == 0 ? comm.send({x.data(), 10, Dtype::kFloat32}, 1)
                                           : comm.recv({x.data(), 9, Dtype::kFloat32}, 0);
    const Status next = status.ok() ? comm.barrier() : status;
    ASSERT_FALSE(next.ok());
    EXPECT_EQ(next.error().code, Code::kMismatch) << next.error().to_string();
    EXPECT_NE(next.error().message.find("40 bytes"), std::string::npos) << next.error().message;
  });
}

TEST(Groups, WhoseOwnMessagesDoNotPairUpAreRefused) {
  on_ranks(2, quick_config(), [](Communicator& comm) {
    std::vector<float> x(4);
    const Status alone = comm.send(view(std::as_const(x)), comm.rank());
    ASSERT_FALSE(alone.ok());
    EXPECT_EQ(alone.error().code, Code::kInvalidArgument);
    EXPECT_FALSE(comm.send(view(std::as_const(x)), 2).ok());
    const Operation over_itself[] = {ops::send(view(std::as_const(x)), 1 - comm.rank()),
                                     ops::recv(view(x), 1 - comm.rank())};
    const Status over = comm.run_group(over_itself);
    ASSERT_FALSE(over.ok());
    EXPECT_NE(over.error().message.find("received over another buffer"), std::string::npos);
    EXPECT_FALSE(comm.recv(view(x), -1).ok());
    EXPECT_TRUE(comm.barrier().ok());
  });
}

}  // namespace
}  // namespace tern
