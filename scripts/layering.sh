#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: layering.sh TREE
# Dependencies point down only. Prints every #include that does not, and how many
# it looked at; fails if there is a wrong one, or none at all.
set -euo pipefail
cd "$1"

# The rules: folder, what its files may include of ours.
mapfile -t rules < <(grep -v '^#' scripts/layers.rules)

# Our folders, for what is included with <>.
ours='(base|names|secure|lnet|lnd|config|sim|rpc|services|tools|ulnet|tests|bench|examples)/'

looked=0 wrong=0
while IFS=: read -r file line text; do
	dir=${file%/*}
	path=${text#*[\"<]} path=${path%%[\">]*}
	if [[ $text == *'<'* ]]; then
		[[ $path =~ ^$ours ]] || continue
	elif [[ $path == config.h || $path != */* ]]; then
		continue # of its own folder
	fi
	looked=$((looked + 1))
	for rule in "${rules[@]}"; do
		IFS=$'\t' read -r folder may _ <<<"$rule"
		[[ $dir =~ ^$folder$ ]] || continue
		may=${may//@/$dir}
		if ! [[ $path =~ ^($may) ]]; then
			echo "$file:$line: $dir may not include $path"
			wrong=$((wrong + 1))
		fi
		continue 2
	done
	echo "$file:$line: no rule for folder $dir"
	wrong=$((wrong + 1))
done < <(find include base names secure lnet lnd config rpc sim services tools examples \
	-name '*.[ch]' ! -name '*.pb-c.[ch]' -print0 2>/dev/null |
	xargs -0 grep -HnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]')

echo "$looked includes, $wrong wrong"
[ "$wrong" = 0 ] && [ "$looked" -gt 0 ]
