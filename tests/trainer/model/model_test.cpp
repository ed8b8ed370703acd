#include "trainer/model/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/trainer/model/reference_model.h"
#include "tests/trainer/model/small_models.h"

namespace tern::trainer {
namespace {

TEST(ModelTest, TheLossIsThatOfTheDefinition) {
  for (const SmallModel& small : small_models()) {
    const auto in = random_inputs<double>(small, 1);
    const double want = ReferenceModel(small.config, in.params).loss(small.shape, in.tokens, in.targets);
    for (const int threads : {1, 2, 3}) {
      auto model = make_model<double>(small, threads);
      EXPECT_NEAR(model.forward(in.params, in.tokens, in.targets), want, 1e-11 * want) << small.name;
    }
  }
}

TEST(ModelTest, LogitsAreThoseOfTheDefinition) {
  const SmallModel small = small_models()[1];
  const auto in = random_inputs<double>(small, 1);
  auto model = make_model<double>(small, 2);
  std::vector<double> logits(static_cast<size_t>(small.config.vocab));
  const auto want = ReferenceModel(small.config, in.params)
                        .sequence(std::span(in.tokens).subspan(static_cast<size_t>(small.shape.tokens)));
  model.logits(in.params, in.tokens, small.shape.tokens + 3, logits);  // position 3 of sequence 1
  for (size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(logits[i], want[3][i], 1e-12);
}

/// Central difference of the loss along one parameter element.
double difference(Model<double>& model, Inputs<double>& in, size_t element) {
  constexpr double kStep = 1e-4;
  const double before = in.params[element];
  in.params[element] = before + kStep;
  const double above = model.forward(in.params, in.tokens, in.targets);
  in.params[element] = before - kStep;
  const double below = model.forward(in.params, in.tokens, in.targets);
  in.params[element] = before;
  return (above - below) / (2 * kStep);
}

TEST(ModelTest, GradientsOfEveryParameterAgreeWithFiniteDifferences) {
  constexpr int64_t kSamples = 16;  // elements per parameter
  for (const SmallModel& small : small_models()) {
    auto in = random_inputs<double>(small, 2);
    auto model = make_model<double>(small, 1);
    const std::vector<double> grads = gradients(model, in);
    Philox random(3);
    for (const Parameter& p : model.layout().parameters()) {
      for (int64_t i = 0; i < std::min(p.size(), kSamples); ++i) {
        const int64_t at =
            p.size() <= kSamples ? i : static_cast<int64_t>(random.below(static_cast<uint64_t>(p.size())));
        const auto element = static_cast<size_t>(p.offset + at);
        const double want = difference(model, in, element);
        ASSERT_NEAR(grads[element], want, 2e-6 * std::max(1.0, std::abs(want)))
            << small.name << ", " << p.name << " element " << at;
      }
    }
  }
}

TEST(ModelTest, TheGradientAlongARandomDirectionAgreesToManyDigits) {
  for (const SmallModel& small : small_models()) {
    auto in = random_inputs<double>(small, 4);
    auto model = make_model<double>(small, 1);
    const std::vector<double> grads = gradients(model, in);
    const auto direction = random_inputs<double>(small, 5).params;
    double slope = 0;
    for (size_t i = 0; i < grads.size(); ++i) slope += grads[i] * direction[i];
    const auto loss_at = [&](double step) {
      Inputs<double> moved = in;
      for (size_t i = 0; i < moved.params.size(); ++i) moved.params[i] += step * direction[i];
      return model.forward(moved.params, moved.tokens, moved.targets);
    };
    // Richardson: two central differences cancel the error of third order
    const double h = 2e-4;
    const double coarse = (loss_at(h) - loss_at(-h)) / (2 * h), fine = (loss_at(h / 2) - loss_at(-h / 2)) / h;
    const double want = (4 * fine - coarse) / 3;
    EXPECT_NEAR(slope, want, 1e-8 * std::max(1.0, std::abs(want))) << small.name;
  }
}

TEST(ModelTest, FloatAgreesWithDouble) {
  for (const SmallModel& small : small_models()) {
    const auto in = random_inputs<float>(small, 6);
    const Inputs<double> exact{{in.params.begin(), in.params.end()}, in.tokens, in.targets};
    auto model = make_model<float>(small, 2);
    auto exact_model = make_model<double>(small, 2);
    const double want = exact_model.forward(exact.params, exact.tokens, exact.targets);
    EXPECT_NEAR(model.forward(in.params, in.tokens, in.targets), want, 1e-5 * want) << small.name;
    const auto grads = gradients(model, in);
    const auto exact_grads = gradients(exact_model, exact);
    double norm = 0, distance = 0;
    for (size_t i = 0; i < grads.size(); ++i) {
      norm += exact_grads[i] * exact_grads[i];
      distance += std::pow(static_cast<double>(grads[i]) - exact_grads[i], 2);
    }
    EXPECT_LT(std::sqrt(distance / norm), 1e-5) << small.name;
  }
}

TEST(ModelTest, TwoHalfBatchesGiveTheGradientsOfTheWhole) {
  SmallModel whole{"whole", small_config(4, 2, 6, false), {4, 33}};
  const SmallModel half{"half", whole.config, {2, 33}};
  const auto in = random_inputs<float>(whole, 7);
  auto model = make_model<float>(whole, 2);
  const auto want = gradients(model, in);
  auto half_model = make_model<float>(half, 2);
  std::vector<float> grads(want.size(), 0.0F);
  const auto n = static_cast<size_t>(half.shape.rows());
  for (const size_t begin : {size_t{0}, n}) {
    half_model.forward(in.params, std::span(in.tokens).subspan(begin, n),
                       std::span(in.targets).subspan(begin, n));
    half_model.backward(in.params, grads, 1.0F, {});
  }
  double norm = 0, distance = 0;
  for (size_t i = 0; i < grads.size(); ++i) {
    norm += static_cast<double>(want[i]) * static_cast<double>(want[i]);
    distance += std::pow(static_cast<double>(grads[i]) - static_cast<double>(want[i]), 2);
  }
  EXPECT_LT(std::sqrt(distance / norm), 1e-6);
}

TEST(ModelTest, EveryRunGivesTheSameBits) {
  for (const SmallModel& small : small_models()) {
    const auto in = random_inputs<float>(small, 8);
    for (const int threads : {1, 2}) {
      auto model = make_model<float>(small, threads);
      const auto first = gradients(model, in);
      EXPECT_EQ(gradients(model, in), first) << small.name;
      auto other = make_model<float>(small, threads);
      EXPECT_EQ(gradients(other, in), first) << small.name;
    }
  }
}

TEST(ModelTest, GradientsAddUpAndScaleWithTheLoss) {
  const SmallModel small = small_models()[0];
  const auto in = random_inputs<double>(small, 9);
  auto model = make_model<double>(small, 1);
  const auto once = gradients(model, in);
  std::vector<double> grads(once.size(), 0.0);
  for (const double loss_scale : {1.0, 0.5}) {
    model.forward(in.params, in.tokens, in.targets);
    model.backward(in.params, grads, loss_scale, {});
  }
  for (size_t i = 0; i < grads.size(); ++i) EXPECT_NEAR(grads[i], 1.5 * once[i], 1e-12);
}

TEST(ModelTest, IgnoredTargetsAddNoLossAndNoGradient) {
  const SmallModel small = small_models()[0];
  auto in = random_inputs<double>(small, 10);
  std::fill(in.targets.begin(), in.targets.end(), -1);
  auto model = make_model<double>(small, 1);
  EXPECT_EQ(model.forward(in.params, in.tokens, in.targets), 0.0);
  for (const double g : gradients(model, in)) EXPECT_EQ(g, 0.0);
}

TEST(ModelTest, EachGradientIsReportedOnceLastFirstAndIsThenFinal) {
  for (const SmallModel& small : small_models()) {
    const auto in = random_inputs<double>(small, 11);
    auto model = make_model<double>(small, 2);
    const auto want = gradients(model, in);
    std::vector<double> grads(want.size(), 0.0);
    int next = model.layout().size() - 1;
    model.forward(in.params, in.tokens, in.targets);
    model.backward(in.params, grads, 1.0, [&](int idx) {
      EXPECT_EQ(idx, next--) << small.name;
      const Parameter& p = model.layout()[idx];
      for (int64_t i = p.offset; i < p.offset + p.size(); ++i)
        ASSERT_EQ(grads[static_cast<size_t>(i)], want[static_cast<size_t>(i)])
            << small.name << ", " << p.name;
    });
    EXPECT_EQ(next, -1) << small.name;
  }
}

TEST(ModelTest, BackwardLeavesThePaddingAlone) {
  const SmallModel small = small_models()[0];
  const auto in = random_inputs<double>(small, 12);
  auto model = make_model<double>(small, 2);
  const auto grads = gradients(model, in);
  std::vector<bool> owned(grads.size(), false);
  for (const Parameter& p : model.layout().parameters())
    std::fill_n(owned.begin() + p.offset, p.size(), true);
  EXPECT_TRUE(std::find(owned.begin(), owned.end(), false) != owned.end());
  for (size_t i = 0; i < grads.size(); ++i) {
    if (owned[i]) continue;
    EXPECT_EQ(grads[i], 0.0);
  }
}

TEST(ModelTest, AParameterThatIsNotANumberMakesTheLossNotANumber) {
  const SmallModel small = small_models()[1];
  const ParameterLayout layout(small.config);
  for (const Parameter& p : layout.parameters()) {
    auto in = random_inputs<float>(small, 13);
    // the last row of the key projections is reached by every query of its group, a norm by every row
    in.params[static_cast<size_t>(p.offset)] = std::numeric_limits<float>::quiet_NaN();
    if (p.kind == Parameter::Kind::kEmbedding) in.tokens[0] = 0;
    auto model = make_model<float>(small, 1);
    EXPECT_TRUE(std::isnan(model.forward(in.params, in.tokens, in.targets))) << p.name;
  }
}

TEST(ModelTest, CreateNamesWhatCannotBe) {
  const auto message = [](const LlamaConfig& config, Shape shape, int threads) {
    const auto result = Model<float>::create(config, shape, threads);
    return result.ok() ? std::string("created") : result.error().message;
  };
  const LlamaConfig good = small_config(2, 2, 10, false);
  EXPECT_EQ(message(good, {1, 1}, 1), "created");
  EXPECT_NE(message(good, {0, 1}, 1).find("0 sequences"), std::string::npos);
  EXPECT_NE(message(good, {1, 129}, 1).find("max_position_embeddings 128"), std::string::npos);
  EXPECT_NE(message(good, {1, 1}, 0).find("0 threads"), std::string::npos);
  LlamaConfig bad = good;
  bad.kv_heads = 3;
  EXPECT_NE(message(bad, {1, 1}, 1).find("num_key_value_heads 3"), std::string::npos);
}

TEST(ModelTest, TokensOutsideTheVocabularyAreABug) {
  const SmallModel small = small_models()[0];
  auto in = random_inputs<float>(small, 14);
  auto model = make_model<float>(small, 1);
  in.tokens[2] = small.config.vocab;
  EXPECT_THROW(model.forward(in.params, in.tokens, in.targets), CheckFailure);
}

}  // namespace
}  // namespace tern::trainer
