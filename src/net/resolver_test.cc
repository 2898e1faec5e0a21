#include "net/resolver.h"

#include "net/net_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::turn_until;

const IpAddress kOne = *IpAddress::parse("192.0.2.1");
const IpAddress kTwo = *IpAddress::parse("2001:db8::2");

struct Question {
  Lookup lookup{Callback<const Resolution&>::to<&Question::on_answer>(*this)};
  std::optional<Resolution> answer;
  void on_answer(const Resolution& resolution) { answer = resolution; }

  [[nodiscard]] Addresses addresses() const { return *answer.value().value(); }
};

// A name server that says what it is told to; its answers are counted.
class Names {
 public:
  Parsed<Addresses> find(const std::string& name) {
    const std::lock_guard lock{mutex_};
    ++asked_;
    if (answer_.empty()) return mistake("no such host: " + name);
    return answer_;
  }
  void set(Addresses answer) {
    const std::lock_guard lock{mutex_};
    answer_ = std::move(answer);
  }
  // Nobody is answered as long as this is held.
  std::unique_lock<std::mutex> hold() { return std::unique_lock{mutex_}; }
  int asked() const {
    const std::lock_guard lock{mutex_};
    return asked_;
  }

 private:
  mutable std::mutex mutex_;
  Addresses answer_;
  int asked_ = 0;
};

class ResolverTest : public ::testing::Test {
 protected:
  ManualClock clock_;
  std::unique_ptr<EventLoop> loop_ = EventLoop::create(clock_).value();
  std::shared_ptr<Names> served_ = std::make_shared<Names>();
  Names& names_ = *served_;
  Resolver resolver_{
      {.refresh = 30s,
       .retry = 1s,
       .names_max = 3,
       .look_up = [served = served_](const auto& name) { return served->find(name); }}};

  void ask(Question& question, const std::string& name = "app.internal") {
    resolver_.resolve(name, *loop_, question.lookup);
  }
  void wait(const Question& question) {
    ASSERT_TRUE(turn_until(*loop_, [&] { return question.answer.has_value(); }));
  }
  void pass(Nanos time) {
    clock_.advance(time);
    loop_->turn(0s);
  }
};

TEST_F(ResolverTest, AnswersAddressesAtOnce) {
  Question question;
  ask(question, "192.0.2.1");
  EXPECT_EQ(question.addresses(), Addresses{kOne});
  EXPECT_EQ(names_.asked(), 0);
}

TEST_F(ResolverTest, AnswersNamesLaterAndThenFromMemory) {
  names_.set({kOne, kTwo});
  Question first;
  ask(first);
  EXPECT_TRUE(first.lookup.is_waiting());
  wait(first);
  EXPECT_EQ(first.addresses(), (Addresses{kOne, kTwo}));
  EXPECT_FALSE(first.lookup.is_waiting());
  Question second;
  ask(second);
  EXPECT_EQ(second.addresses(), (Addresses{kOne, kTwo})) << "from inside the call";
  EXPECT_EQ(names_.asked(), 1);
}

TEST_F(ResolverTest, LooksUpAnewBehindAnAnswerThatIsOld) {
  names_.set({kOne});
  Question question;
  ask(question);
  wait(question);
  names_.set({kTwo});
  pass(31s);
  Question old;
  ask(old);
  EXPECT_EQ(old.addresses(), Addresses{kOne}) << "nobody waits";
  ASSERT_TRUE(turn_until(*loop_, [&] {
    Question fresh;
    ask(fresh);
    return fresh.addresses() == Addresses{kTwo};
  }));
  EXPECT_EQ(names_.asked(), 2);
}

// A name server that is down hurts nobody who is known.
TEST_F(ResolverTest, KeepsTheLastGoodAddressesWhenLookingUpFails) {
  names_.set({kOne});
  Question question;
  ask(question);
  wait(question);
  names_.set({});
  for (int i = 1; i <= 3; ++i) {
    pass(31s);
    Question again;
    ask(again);
    EXPECT_EQ(again.addresses(), Addresses{kOne});
    ASSERT_TRUE(turn_until(*loop_, [&] { return names_.asked() == 1 + i; }));
    ASSERT_TRUE(
        turn_until(*loop_, [&] { return resolver_.failures() == static_cast<std::uint64_t>(i); }));
  }
}

TEST_F(ResolverTest, SaysThatANameIsUnknownAndFindsItOnceItIsKnown) {
  Question question;
  ask(question);
  wait(question);
  ASSERT_FALSE(*question.answer);
  EXPECT_THAT(question.answer->error().text(), HasSubstr("no such host"));
  names_.set({kOne});
  Question at_once;
  ask(at_once);
  ASSERT_TRUE(at_once.answer);
  EXPECT_FALSE(*at_once.answer) << "nobody asks the name server for every request";
  EXPECT_EQ(names_.asked(), 1);
  pass(2s);
  Question again;
  ask(again);
  wait(again);
  EXPECT_EQ(again.addresses(), Addresses{kOne});
}

TEST_F(ResolverTest, RefusesMoreNamesThanItRemembers) {
  names_.set({kOne});
  std::vector<std::unique_ptr<Question>> questions;
  for (const char* name : {"a", "b", "c", "d"}) {
    questions.push_back(std::make_unique<Question>());
    ask(*questions.back(), name);
  }
  ASSERT_TRUE(questions.back()->answer);
  EXPECT_THAT(questions.back()->answer->error().text(), HasSubstr("too many"));
  wait(*questions[2]);
  EXPECT_EQ(questions[2]->addresses(), Addresses{kOne});
}

// The answer must not come to somebody who is gone.
TEST_F(ResolverTest, DoesNotAnswerWhoIsGone) {
  names_.set({kOne});
  std::unique_lock hold = names_.hold();
  auto gone = std::make_unique<Question>();
  ask(*gone);
  gone.reset();
  Question cancelled;
  ask(cancelled);
  cancelled.lookup.cancel();
  Question there;
  ask(there);
  hold.unlock();
  wait(there);
  loop_->turn(0s);
  EXPECT_FALSE(cancelled.answer);
}

// Several loops share one resolver; each hears in its own thread.
TEST(Resolver, AnswersEachLoopInItsThread) {
  SystemClock clock;
  std::vector<std::unique_ptr<EventLoop>> loops;
  for (int i = 0; i < 3; ++i) loops.push_back(EventLoop::create(clock).value());
  Resolver resolver{{.look_up = [](const std::string&) { return Parsed<Addresses>{{kOne}}; }}};
  std::atomic<int> answered = 0;
  {
    std::vector<std::jthread> threads;
    for (auto& loop : loops) {
      threads.emplace_back([&] {
        for (const char* name : {"a", "b", "c", "d"}) {
          Question question;
          resolver.resolve(name, *loop, question.lookup);
          if (turn_until(*loop, [&] { return question.answer.has_value(); })) ++answered;
        }
      });
    }
  }
  EXPECT_EQ(answered, 12);
}

// A name server that is down must not keep a program from ending, nor be heard after that.
TEST(Resolver, EndsWhileALookupHangs) {
  struct Hanging {
    std::promise<void> began;
    std::promise<void> gone;
    Hanging() = default;
    Hanging(const Hanging&) = delete;
    Hanging& operator=(const Hanging&) = delete;
    ~Hanging() { gone.set_value(); }
  };
  SystemClock clock;
  auto loop = EventLoop::create(clock).value();
  Question question;
  std::promise<void> end;
  auto hanging = std::make_shared<Hanging>();
  const std::future<void> began = hanging->began.get_future();
  const std::future<void> gone = hanging->gone.get_future();
  {
    Resolver resolver{
        {.look_up = [hanging = std::exchange(hanging, nullptr),
                     until = std::shared_future{end.get_future()}](const std::string&) {
          hanging->began.set_value();
          until.wait();
          return Parsed<Addresses>{{kOne}};
        }}};
    resolver.resolve("app.internal", *loop, question.lookup);
    ASSERT_EQ(began.wait_for(30s), std::future_status::ready);
  }
  EXPECT_EQ(gone.wait_for(0s), std::future_status::timeout) << "it hangs still";
  loop.reset();
  end.set_value();
  EXPECT_EQ(gone.wait_for(30s), std::future_status::ready) << "the thread ends by itself";
  EXPECT_FALSE(question.answer);
}

TEST(LookUp, FindsThisMachine) {
  const Parsed<Addresses> found = look_up("localhost");
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_TRUE(found->front() == *IpAddress::parse("127.0.0.1") ||
              found->front() == *IpAddress::parse("::1"));
  EXPECT_THAT(look_up("a..b").error().text(), HasSubstr("cannot find the host 'a..b'"));
}

}  // namespace
}  // namespace sluice::net
