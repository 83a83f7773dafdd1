#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The subsystems that the library's lines name are those of log_subsystems[] in
# base/log.c: of others lnetctl knows nothing, and their level cannot be set. And
# lnet_log_set(3) names all of them.
set -uo pipefail
cd "${srcdir:-.}" || exit 1
dir=$(mktemp -d "${TMPDIR:-/tmp}/ulnet-log.XXXXXX")
trap 'rm -rf "$dir"' EXIT
page=man/man3/lnet_log_set.3

# What the table says.
sed -n '/^const char \*const log_subsystems/,/^};/p' base/log.c | grep -o '"[^"]*"' |
	tr -d '"' >"$dir/table"
LC_ALL=C sort -c "$dir/table" || exit 1
# What calls say: the first text among their arguments.
find base config lnd lnet names rpc secure -name '*.[ch]' -exec cat {} + | tr '\n' ' ' |
	grep -oE '\b(log_(err|warn|info|debug|warn_limited|limit_pass|write)|lnet_log|lnet_log_on_for)\([^"()]*(\([^()]*\)[^"()]*)*"[^"]*"' |
	sed -E 's/.*"(.*)"$/\1/' | grep -v '^%' | LC_ALL=C sort -u >"$dir/calls"
[ -s "$dir/calls" ] || {
	echo "no calls are found"
	exit 1
}
diff "$dir/table" "$dir/calls" || {
	echo "base/log.c: log_subsystems (<) is not what is logged (>)"
	exit 1
}
while read -r name; do
	grep -qE "^\.Ql $name\b" "$page" || {
		echo "$page: $name is missing"
		exit 1
	}
done <"$dir/table"
echo "$(wc -l <"$dir/table") subsystems"
