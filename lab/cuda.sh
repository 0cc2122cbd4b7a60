#!/bin/sh
# Everything that needs a GPU, in one go: speed with rows in shared and in global memory, the tests of the crate and of PyTorch,
# and the command line against the CPU. The machine with the GPU needs no Rust; build this elsewhere:
#
#   cargo build --release -p phex-cli
#   cargo test --release -p phex-cuda --no-run          # behaviour-*, memory-*
#   cargo build --release -p phex-cuda --example throughput
#   make wheel
#
# and put it into one folder as phex, behaviour, memory, throughput and *.whl (with pytest and what the tests import).
#
#   lab/cuda.sh FOLDER EDGES.tsv [speed|tests|torch|cli ...]
set -u
bin=$1
edges=$2
shift 2
parts=${*:-speed tests torch cli}
case " $parts " in *" speed "*)
    for rows in global auto; do
        echo "== family, PHEX_CUDA_BLOCK_ROWS=$rows"
        PHEX_CUDA_BLOCK_ROWS=$rows "$bin/throughput" "$edges" 1 256 512 2048 4096 family
    done
    echo "== all engines"
    "$bin/throughput" "$edges" 256 16384 65536
    ;;
esac
case " $parts " in *" tests "*)
    "$bin/behaviour" --nocapture
    "$bin/memory" --nocapture
    ;;
esac
case " $parts " in *" torch "*)
    python3 -m pip install --quiet --no-index --find-links "$bin" phex pytest hypothesis sybil
    python3 -m pytest -q python/tests/test_torch_cuda.py
    python3 lab/python/gpu.py "$edges"
    ;;
esac
case " $parts " in *" cli "*)
    python3 lab/python/cuda_cli.py "$bin/phex"
    ;;
esac
