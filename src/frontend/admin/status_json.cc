#include "frontend/admin/status_json.h"

#include "base/rfc3339.h"
#include "base/text.h"

#include <fmt/format.h>

#include <chrono>
#include <string_view>

namespace sluice::admin {
namespace {

using frontend::ListenerStatus;
using frontend::NamedCounts;
using frontend::ReloadStatus;
using frontend::RulesFileStatus;
using frontend::ServerStatus;
using frontend::StatusReport;
using frontend::TableFullStatus;
using frontend::UpstreamStatus;

// The nanoseconds of a start are noise.
std::string instant(WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch());
  return json_string(format_rfc3339(WallTime{seconds}));
}

// [a,b,c], with `write` applied to each.
template <class List, class Write>
std::string array(const List& list, Write&& write) {
  std::string text = "[";
  for (const auto& one : list) text += (text.size() > 1 ? "," : "") + write(one);
  return text + "]";
}

std::string counts(const NamedCounts& counts) {
  std::string text = "{";
  for (const auto& [name, count] : counts) {
    text += fmt::format("{}{}:{}", text.size() > 1 ? "," : "", json_string(name), count);
  }
  return text + "}";
}

std::string listener(const ListenerStatus& one) {
  return fmt::format(R"({{"name":{},"endpoint":{}}})", json_string(one.name),
                     json_string(one.endpoint));
}

std::string reload(const std::optional<ReloadStatus>& last) {
  if (!last) return "null";
  return fmt::format(R"({{"at":{},"result":"{}"}})", instant(last->at),
                     last->succeeded ? "success" : "error");
}

std::string upstream(const UpstreamStatus& group, std::size_t workers) {
  const auto server = [workers](const ServerStatus& one) {
    return fmt::format(R"({{"address":{},"healthy":{},"in_use":{},"idle":{},"failures":{},)"
                       R"("addresses":{},"addresses_ejected":{}}})",
                       json_string(one.address), is_healthy(one, workers), one.in_use, one.idle,
                       one.failures, one.addresses, one.addresses_ejected);
  };
  return fmt::format(R"({{"name":{},"servers":{}}})", json_string(group.name),
                     array(group.servers, server));
}

std::string text_or_null(const std::string& text) {
  return text.empty() ? "null" : json_string(text);
}

std::string rules_from(const std::optional<RulesFileStatus>& rules) {
  if (!rules) return "null";
  return fmt::format(R"({{"source":{},"version":{},"loaded_at":{},"in_sync":{},"of_last_run":{},)"
                     R"("error":{},"last_good_error":{},"watch_problem":{}}})",
                     json_string(rules->source), json_string(rules->version),
                     rules->loaded_at ? instant(*rules->loaded_at) : "null", rules->error.empty(),
                     rules->of_last_run, text_or_null(rules->error),
                     text_or_null(rules->last_good_error), text_or_null(rules->watch_problem));
}

std::string configuration(const StatusReport& report) {
  return fmt::format(R"({{"file":{},"read_at":{},"rules":{},"last_reload":{},"rules_from":{}}})",
                     text_or_null(report.file), instant(report.read_at), report.rules,
                     reload(report.last_reload), rules_from(report.rules_file));
}

std::string keys(const StatusReport& report) {
  const TableFullStatus& full = report.table_full;
  return fmt::format(R"({{"used":{},"capacity":{},"evictions":{},"full":{},"approximated":{},)"
                     R"("allowed_untracked":{},"rejected":{},"refund_units_lost":{},)"
                     R"("blocks_dropped":{},"block_rejections_lost":{},"cells_used":{},)"
                     R"("cells":{}}})",
                     report.keys, report.keys_max, report.evictions, full.now, full.approximated,
                     full.allowed, full.rejected, full.refunds_lost, full.blocks_dropped,
                     full.block_rejections_lost, full.cells, full.cells_max);
}

}  // namespace

std::string status_json(const StatusReport& report) {
  const auto group = [&](const UpstreamStatus& one) { return upstream(one, report.workers); };
  const auto uptime_s = std::chrono::duration_cast<std::chrono::seconds>(report.uptime).count();
  return fmt::format(
      R"({{"version":{},"state":{},"started_at":{},"uptime_seconds":{},"workers":{},)"
      R"("configuration":{},"listeners":{},)"
      R"("connections":{},"connections_evicted":{},"connections_rejected":{},)"
      R"("requests_in_flight":{},"requests_queued":{},)"
      R"("requests":{},"decisions":{},"rejections":{},"upstreams":{},)"
      R"("keys":{},"blocks":{}}})"
      "\n",
      json_string(report.version), json_string(report.state), instant(report.started_at), uptime_s,
      report.workers, configuration(report), array(report.listeners, listener), report.connections,
      report.connections_evicted, report.connections_rejected, report.requests_in_flight,
      report.requests_queued, counts(report.requests), counts(report.decisions),
      counts(report.rejections), array(report.upstreams, group), keys(report), report.blocks);
}

}  // namespace sluice::admin
