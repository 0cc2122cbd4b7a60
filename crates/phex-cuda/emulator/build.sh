#!/bin/sh
# Builds the emulated driver and compiler into a folder to be put in LD_LIBRARY_PATH.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: build.sh FOLDER}
mkdir -p "$out"
${CXX:-g++} -O1 -std=c++17 -Wall -shared -fPIC -DEMULATOR_HOME="\"$here\"" -o "$out/libcuda.so.1" "$here/driver.cpp" -ldl
cp "$out/libcuda.so.1" "$out/libnvrtc.so.13"
${CXX:-g++} -O1 -std=c++17 -Wall -o "$out/nvrtc-check" "$here/check.cpp" -ldl
