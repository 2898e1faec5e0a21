#!/usr/bin/env bash
# How ./dev gets the packages a step lacks. Sourced by it; uses its `packages`.
#
# Packages are added, never removed: what a user installed may be needed elsewhere. When nothing is
# missing, all this costs is one dpkg-query.

# require SET...: installs what is missing of these sets, or explains and exits with 3.
require() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    require_tools
    return
  fi
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]} == 0)) || install_packages "${missing[@]}"
}

missing_packages() {
  local set alternatives name wanted=() installed
  for set in "$@"; do
    # shellcheck disable=SC2154,SC2206 # declared by ./dev; a set is a list of words
    wanted+=(${packages[$set]})
  done
  # shellcheck disable=SC2046 # words again; dpkg-query fails when it does not know one of them
  installed=$(installed_packages $(tr '|' ' ' <<<"${wanted[*]}")) || true
  for alternatives in "${wanted[@]}"; do
    for name in ${alternatives//|/ }; do
      [[ $'\n'$installed$'\n' != *$'\n'"$name"$'\n'* ]] || continue 2
    done
    echo "${alternatives%%|*}"
  done | LC_ALL=C sort -u
}

# The second letter of dpkg's status is the present state of a package.
installed_packages() {
  # shellcheck disable=SC2016 # these are fields of dpkg, not of the shell
  dpkg-query --show --showformat '${db:Status-Abbrev} ${Package}\n' "$@" 2>/dev/null |
    awk 'substr($1, 2, 1) == "i" { print $2 }'
}

install_packages() {
  local as_root=() known=()
  if ((EUID != 0)); then
    sudo -n true 2>/dev/null || explain_missing "$@"
    as_root=(sudo -n)
  fi

  refresh_package_lists "$@"
  mapfile -t known < <(known_packages "$@")
  ((${#known[@]} == $#)) || warn_about_unknown "$@"
  ((${#known[@]})) || return 0

  logged "installing ${known[*]}" \
    apt_get install --yes --no-remove --no-install-recommends "${known[@]}" ||
    lacking "the packages could not be installed without removing any; what apt-get said is above"
}

# Uses the caller's `as_root`. Another apt-get, as of a freshly booted machine, is waited for.
apt_get() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@"
}

# The lists of packages are fetched when there are none, when they are more than a day old (what
# they name may be gone from the mirror by then), and when they do not know a package.
refresh_package_lists() {
  local known
  mapfile -t known < <(known_packages "$@")
  if ((${#known[@]} == $#)) && lists_are_recent; then return; fi
  logged "fetching the lists of packages" apt_get update ||
    say "the lists of packages could not be fetched; trying with those at hand"
}

# apt writes into this folder at each update; the lists themselves bear the mirror's dates.
lists_are_recent() {
  [[ -n $(find /var/lib/apt/lists/partial -maxdepth 0 -mtime -1 2>/dev/null) ]]
}

# Those of the given packages that apt could install.
known_packages() {
  LC_ALL=C apt-cache policy "$@" 2>/dev/null |
    awk '/^[^ ]/ { name = substr($1, 1, length($1) - 1) }
         /^  Candidate:/ && $2 != "(none)" { print name }'
}

# Another release of Debian, or Ubuntu: what it offers under another name may do as well.
warn_about_unknown() {
  local unknown
  mapfile -t unknown < <(LC_ALL=C comm -23 <(printf '%s\n' "$@" | LC_ALL=C sort) \
    <(known_packages "$@" | LC_ALL=C sort))
  say "this system offers no ${unknown[*]} (Debian 12 does); going on without"
}

explain_missing() {
  local sudo="" how="as root"
  if command -v sudo >/dev/null; then sudo="sudo " how="yourself (sudo asks for a password)"; fi
  say "these packages are missing: $*"
  say "run this $how, then come back:"
  printf '\n  %sapt-get update && %sapt-get install --no-remove --no-install-recommends %s\n\n' \
    "$sudo" "$sudo" "$*" >&2
  exit 3
}

# ---- other systems -------------------------------------------------------------------------------

# Without apt there is no telling what is installed; CMake will name the first thing it misses.
require_tools() {
  local tool missing=()
  for tool in cmake ninja g++; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  [[ -n ${told_about_tools:-} ]] || say_what_is_needed
  told_about_tools=yes
  ((${#missing[@]} == 0)) || lacking "missing: ${missing[*]}"
}

say_what_is_needed() {
  cat >&2 <<'END'
./dev: this is not Debian, so install these yourself (versions that are known to work):
  always      GCC 12, CMake 3.25, Ninja, CLI11 2.1, fmt 9.1, tl-expected 1.0, OpenSSL 3, RE2,
              yaml-cpp 0.7, libmaxminddb 1.7, simdjson 3.0, zlib 1.2, Howard Hinnant's date 3.0,
              the tz database
  test        GoogleTest 1.12 with gMock, RapidCheck, GMP 6.2 with C++, http_parser 2.9, Lua 5.1,
              Python 3, nginx, redis-server 7.0, Clang 19 as clang++-19
  bench       Google Benchmark 1.7, Abseil, TBB, Boost 1.74, nginx, HAProxy, wrk
  lint        clang-tidy-19, clang-format-19, shellcheck
  coverage    gcovr
END
}
