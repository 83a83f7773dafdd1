#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ARCHITECTURE.md names files and functions that are there.
set -uo pipefail
cd "${srcdir:-.}" || exit 1

bad=0
complain() {
	echo "ARCHITECTURE.md: $*"
	bad=1
}

# What stands in `...`, but for patterns: NAME, x.c, <file>, *.
named() { # EXPRESSION
	grep -oE "\`$1\`" ARCHITECTURE.md | tr -d '`' | grep -vE 'NAME|<|\*|(^|[/_])x[./]' |
		LC_ALL=C sort -u
}

files=$(find . \( -name .git -o -name build \) -prune -o -type f -print)
[ -n "$(named '[a-z_]+\(\)')" ] || complain "no functions are found in it"
while read -r name; do
	grep -qE "(^|/)$name$" <<<"$files" || complain "there is no file $name"
done < <(named '[A-Za-z0-9_./-]+\.(c|h|sh|def|mk|proto|json|txt|pml|md)')
while read -r name; do
	grep -rqE "\b${name%()}\(" base bench config include lnd lnet names rpc scripts secure sim \
		tests tools || complain "there is no function $name"
done < <(named '[A-Za-z_]+\(\)')
while read -r name; do
	[ -d "$name" ] || complain "there is no folder $name"
done < <(named '[a-z0-9_/-]+/')

[ $bad != 0 ] || echo "$(named '[^`]+' | wc -l) names, all of them there"
exit $bad
