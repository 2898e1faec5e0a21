#include <sluice/core/gcra.h>
#include <sluice/int128.h>

namespace sluice::core {
namespace {

std::uint8_t fraction_bits_for(std::int64_t period_ns, std::int64_t amount) noexcept {
  if (period_ns % amount == 0) return 0;
  return period_ns / amount >= 16 ? 4 : 8;
}

}  // namespace

GcraLimit GcraLimit::from(Numbers numbers) noexcept {
  const std::int64_t period_ns = numbers.period.count();
  const std::int64_t amount = numbers.amount;
  const std::uint8_t bits = fraction_bits_for(period_ns, amount);
  const std::int64_t tick_per_ns = std::int64_t{1} << bits;
  const std::int64_t unit = mul_div_ceil(period_ns, tick_per_ns, amount);
  const std::int64_t capacity = unit * numbers.burst;
  const std::int64_t full = capacity + numbers.max_delay.count() * tick_per_ns;
  return {.meter = {.unit = unit,
                    .capacity = capacity,
                    .full = full,
                    .possible = full + kClockStep.count() * tick_per_ns,
                    .burst = numbers.burst,
                    .count_rejected = numbers.count_rejected,
                    .inverse = inverse_of(unit)},
          .fraction_bits = bits};
}

Step<GcraState> gcra_charge(const GcraLimit& limit, GcraState state, MonoTime now,
                            Cost cost) noexcept {
  return gcra_answer(limit, meter_charge(limit.meter, state, gcra_ticks(limit, now), cost));
}

GcraState gcra_refund(const GcraLimit& limit, GcraState state, MonoTime now, Receipt receipt,
                      Cost amount) noexcept {
  return meter_refund(limit.meter, state, gcra_ticks(limit, now), receipt, amount);
}

GcraState gcra_convert(const GcraLimit& from, const GcraLimit& to, GcraState state, MonoTime now,
                       OnChange change) noexcept {
  const std::uint64_t now_ticks = gcra_ticks(to, now);
  if (change == OnChange::reset) return meter_restarted(state, now_ticks, 0);
  const std::int64_t level = meter_level(from.meter, state, gcra_ticks(from, now));
  const std::int64_t kept = meter_converted(from.meter, to.meter, level, change);
  return meter_restarted(state, now_ticks, kept);
}

}  // namespace sluice::core
