#!/usr/bin/env bash
# How ./dev gets the packages a step lacks. Sourced by it; uses its `packages` and `keep_boost`.
#
# When nothing is missing, all this costs is one dpkg-query.

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
  local -x LC_ALL=C
  local set wanted=()
  for set in "$@"; do
    # shellcheck disable=SC2154,SC2206 # declared by ./dev; a set is a list of words
    wanted+=(${packages[$set]})
  done
  comm -23 <(printf '%s\n' "${wanted[@]}" | sort -u) <(installed_packages "${wanted[@]}" | sort -u)
}

# The second letter of dpkg's status is the present state of a package.
installed_packages() {
  # shellcheck disable=SC2016 # these are fields of dpkg, not of the shell
  dpkg-query --show --showformat '${db:Status-Abbrev} ${Package}\n' "$@" 2>/dev/null |
    awk 'substr($1, 2, 1) == "i" { print $2 }'
}

install_packages() {
  local as_root=() known=() replaced=()
  if ((EUID != 0)); then
    sudo -n true 2>/dev/null || explain_missing "$@"
    as_root=(sudo -n)
  fi

  refresh_package_lists "$@"
  mapfile -t known < <(known_packages "$@")
  ((${#known[@]} == $#)) || warn_about_unknown "$@"
  ((${#known[@]})) || return 0
  mapfile -t replaced < <(packages_replaced_by "${known[@]}")
  ((${#replaced[@]} == 0)) || agree_to_replace "${replaced[@]}"

  logged "installing ${known[*]}" \
    apt_get install --yes --no-install-recommends "${known[@]}" ||
    lacking "the packages could not be installed; what apt-get said is above"
  ((${#replaced[@]} == 0)) || say_how_to_undo "${replaced[@]}"
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
  local sudo="" how="as root" replaced
  if command -v sudo >/dev/null; then sudo="sudo " how="yourself (sudo asks for a password)"; fi
  mapfile -t replaced < <(packages_replaced_by "$@")
  say "these packages are missing: $*"
  ((${#replaced[@]} == 0)) || say "installing them replaces ${replaced[*]}"
  say "run this $how, then come back:"
  printf '\n  %sapt-get update && %sapt-get install --no-install-recommends %s\n\n' \
    "$sudo" "$sudo" "$*" >&2
  exit 3
}

# ---- Boost ---------------------------------------------------------------------------------------

# What apt would remove to install the given packages, as NAME=VERSION. All of them conflict with
# libboost1.81-dev: the headers of Boost 1.74 and whatever needs these.
packages_replaced_by() {
  LC_ALL=C apt-get install --simulate --no-install-recommends "$@" 2>/dev/null |
    awk '/^Remv / { gsub(/[][]/, "", $3); print $2 "=" $3 }' | sort -u
}

agree_to_replace() {
  say "Sluice needs Boost 1.81, which Debian cannot install beside the Boost that is here."
  say "Installing it replaces: $*"
  # shellcheck disable=SC2154 # set by ./dev
  [[ -z $keep_boost ]] || refuse_to_replace "--keep-boost was given, so nothing was changed."
  if [[ -t 0 && -t 2 && -z ${CI:-} ]]; then
    local answer
    read -rp "./dev: replace them? [Y/n] " answer || answer=no # the terminal went away
    [[ -z $answer || $answer == [Yy]* ]] || refuse_to_replace "Nothing was changed."
  fi
}

refuse_to_replace() {
  say "$1 To build beside the other Boost, use a container:"
  # shellcheck disable=SC2016 # for the reader's shell
  printf '\n  docker run --rm -it -v "$PWD":/sluice -w /sluice debian:12 ./dev build\n\n' >&2
  exit 3
}

say_how_to_undo() {
  say "replaced $*; to undo this, as root:"
  printf '\n  apt-get install --no-install-recommends %s\n\n' "$*" >&2
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
  always      GCC 12, CMake 3.25, Ninja, Boost 1.81, CLI11 2.1, fmt 9.1, tl-expected 1.0,
              Howard Hinnant's date 3.0, the tz database
  test        GoogleTest 1.12 with gMock, RapidCheck, OpenSSL 3, Python 3, Clang 19 as clang++-19
  bench       Google Benchmark 1.7
  lint        clang-tidy-19, clang-format-19, shellcheck
  coverage    gcovr
END
}
