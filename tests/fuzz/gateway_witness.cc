#include "gateway_witness.h"

#include "fuzz.h"
#include "identity/proxy_protocol.h"
#include "messages.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::fuzz {
namespace {

using Kind = net::BodyFraming::Kind;

// A request as a server saw it, and what the server said to it.
struct Served {
  const Message* request = nullptr;
  const Message* answer = nullptr;  // null: none
};

class Witness {
 public:
  explicit Witness(const Play& play) : play_(play) {}

  void judge() {
    find_requests();
    for (const auto& server : play_.servers()) hear_server(*server);
    for (const auto& [id, served] : served_) judge_passed_on(id, served);
    if (!play_.knows_clients()) return;
    for (std::size_t i = 0; i < play_.clients().size(); ++i) hear_client(i);
  }

 private:
  // Which client's request each record is of: every connection is answered in order.
  void find_requests() {
    for (const Ended& ended : play_.ended()) by_id_.emplace(ended.id, &ended);
    if (!play_.knows_clients()) return;
    of_client_.resize(play_.clients().size());
    for (const Ended& ended : play_.ended()) of_client_[number_of(ended)].push_back(&ended);
    for (std::size_t i = 0; i < of_client_.size(); ++i) match_requests(i);
  }

  [[nodiscard]] std::size_t number_of(const Ended& ended) const {
    if (play_.clients().size() == 1) return 0;
    for (std::size_t i = 0; i < play_.clients().size(); ++i) {
      if (play_.address_of(i) == ended.client) return i;
    }
    expect(false, "a record is of a client");
    return 0;
  }

  void match_requests(std::size_t client) {
    std::string_view said = play_.clients()[client]->sent;
    if (play_.is_announced()) said.remove_prefix(identity::parse_proxy_header(said).consumed);
    sent_.push_back(read_requests(said, Reader::lenient, gateway::GatewayOptions{}.head));
    const std::vector<Message>& requests = sent_.back();
    std::size_t next = 0;
    for (const Ended* ended : of_client_[client]) {
      if (ended->method.empty()) {
        // The rest of it may have come too late.
        expect(next == requests.size() || ended->status == 408, "a request is taken for one");
        continue;
      }
      expect(next < requests.size(), "every request that is answered was sent");
      const Message& request = requests[next++];
      expect(request.method == ended->method && request.target == ended->target,
             "requests are answered in their order");
      request_of_[ended] = {client, next - 1};
    }
  }

  void hear_server(const Player& server) {
    if (is_tls(server.received)) return;
    requests_.push_back(read_requests(server.received, Reader::strict));
    std::vector<std::string> methods;
    for (const Message& request : requests_.back()) methods.push_back(request.method);
    answers_.push_back(read_answers(server.sent, methods));
    for (std::size_t i = 0; i < methods.size(); ++i) {
      const Message* answer = i < answers_.back().size() ? &answers_.back()[i] : nullptr;
      const Message& request = requests_.back()[i];
      expect(request.count("x-request-id") == 1, "every request has one id");
      served_[request.last("x-request-id")].push_back({&request, answer});
    }
  }

  [[nodiscard]] static bool is_tls(std::string_view bytes) noexcept {
    return bytes.starts_with('\x16');
  }

  void judge_passed_on(const std::string& id, const std::vector<Served>& served) {
    const auto [first, last] = by_id_.equal_range(id);
    expect(first != last, "a server sees requests of clients only");
    std::size_t passed_on = 0;
    for (auto record = first; record != last; ++record) passed_on += 1 + record->second->retries;
    expect(served.size() <= passed_on, "a request is passed on as often as the gateway says");
    if (std::next(first) != last) return;  // clients that choose their ids may choose one twice
    const Ended& ended = *first->second;
    for (const Served& one : served) judge_copy(ended, *one.request);
    if (served.size() > 1) expect(may_repeat(*served[0].request), "nothing happens twice");
  }

  [[nodiscard]] static bool may_repeat(const Message& request) noexcept {
    const std::string& method = request.method;
    const bool is_idempotent = method == "GET" || method == "HEAD" || method == "OPTIONS" ||
                               method == "PUT" || method == "DELETE";
    return is_idempotent && request.framing.kind == Kind::none;
  }

  void judge_copy(const Ended& ended, const Message& copy) {
    expect(copy.method == ended.method && copy.target == ended.target, "it is the same request");
    const auto found = request_of_.find(&ended);
    if (found == request_of_.end()) return;
    const Message& original = sent_[found->second.first][found->second.second];
    expect(copy.framing == original.framing, "a request keeps its framing");
    judge_body(copy, original);
  }

  static void judge_body(const Message& copy, const Message& original) {
    expect(original.body.starts_with(copy.body), "a body is what was sent");
    if (!copy.is_complete) return;
    expect(original.is_complete && original.body.size() == copy.body.size(),
           "a body that seems complete is");
  }

  // Each answer is to the next request of the client; nothing follows one that is cut off.
  void hear_client(std::size_t number) {
    std::string_view heard = play_.clients()[number]->received;
    for (const Ended* ended : of_client_[number]) {
      const std::optional<Message> answer = take_answer(heard, ended->method);
      if (!answer) break;
      // Clients of gRPC are told in the headers of a 200.
      const bool is_grpc =
          ended->server_status == 0 && answer->status == 200 && answer->count("grpc-status") == 1;
      expect(answer->status == ended->status || is_grpc,
             "a client hears what the gateway says that it said");
      if (!ended->id.empty()) {
        expect(answer->last("x-request-id") == ended->id, "an answer is to the next request");
      }
      judge_answer(*ended, *answer);
      if (!answer->is_complete) break;
    }
    expect(heard.empty(), "a client hears nothing but answers to its requests");
  }

  void judge_answer(const Ended& ended, const Message& answer) {
    if (ended.server_status == 0 || by_id_.count(ended.id) != 1) return;
    const auto served = served_.find(ended.id);
    if (served == served_.end()) return;  // a server that answers and does not listen
    const Message* const original = served->second.back().answer;
    expect(original != nullptr, "an answer is a server's");
    expect(original->status == answer.status, "an answer keeps its status");
    judge_body(answer, *original);
  }

  const Play& play_;
  std::multimap<std::string, const Ended*> by_id_;
  std::vector<std::vector<const Ended*>> of_client_;
  std::vector<std::vector<Message>> sent_;  // by clients
  std::map<const Ended*, std::pair<std::size_t, std::size_t>> request_of_;
  std::vector<std::vector<Message>> requests_;  // of servers
  std::vector<std::vector<Message>> answers_;
  std::map<std::string, std::vector<Served>> served_;  // by id, in the order of connections
};

}  // namespace

void judge(const Play& play) { Witness{play}.judge(); }

}  // namespace sluice::fuzz
