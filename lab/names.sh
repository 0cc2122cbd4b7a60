#!/usr/bin/env bash
# Lists the names of types that stand for three or more things, and fails if there are more than LIMIT.
# Usage: lab/names.sh LIMIT
set -euo pipefail
cd "$(dirname "$0")/.."
limit=${1:?the largest number of names}
names=$(git grep -hoE '^\s*(pub(\([a-z]+\))? )?(struct|enum|trait) [A-Z]\w+' -- 'crates/*.rs' 'lab/*.rs' \
  | awk '{ print $NF }' | sort | uniq -c | awk '$1 >= 3' | sort -rn)
echo "type names with three or more definitions (at most $limit):"
echo "$names"
[ "$(echo "$names" | grep -c .)" -le "$limit" ]
