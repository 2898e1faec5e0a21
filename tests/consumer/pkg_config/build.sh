#!/bin/sh
# Without CMake: $1 is the source, $2 the program; CXX and CXXFLAGS as usual.
set -eu
# shellcheck disable=SC2046,SC2086  # each word is an argument
$CXX -std=c++20 ${CXXFLAGS:-} "$1" -o "$2" $(pkg-config --cflags --libs sluice)
