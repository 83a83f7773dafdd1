#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every public function has a page, every page is listed in man/module.mk (and is
# installed therefore), every alias leads somewhere, and mandoc has nothing to say.
set -uo pipefail
cd "${srcdir:-.}" || exit 1

bad=0
complain() {
	echo "$*"
	bad=1
}

functions=$(bash scripts/public_functions.sh include/ulnet/*.h) ||
	complain "public headers cannot be read"
for name in $(cut -d' ' -f2 <<<"$functions"); do
	[ -e "man/man3/$name.3" ] || complain "$name: no page man/man3/$name.3"
done

listed=$(grep -v '^#' man/module.mk | grep -oE '%D%/[^ ]+\.[1-8]' |
	sed 's,%D%,man,')
for page in $listed; do
	[ -e "$page" ] || complain "$page: in man/module.mk only"
done
pages=$(find man -name '*.[1-8]' | LC_ALL=C sort)
for page in $pages; do
	grep -qxF "$page" <<<"$listed" ||
		complain "$page: not in man/module.mk"
	if target=$(sed -n '1s/^\.so //p' "$page") && [ -n "$target" ]; then
		[ -e "man/$target" ] || complain "$page: no page $target"
	fi
done

# Every counter of RPC is explained.
counters=$(sed -nE 's/^STAT\(([a-z_]+),.*/\1/p' rpc/stat.def)
[ -n "$counters" ] || complain "rpc/stat.def cannot be read"
for name in $counters; do
	grep -qxF ".It Va $name" man/man3/ulrpc_stats.3 ||
		complain "man/man3/ulrpc_stats.3: no $name"
done

# Every field of a structure that configures RPC is explained.
fields() { # HEADER STRUCTURE
	sed -n "/^struct $2 {/,/^};/p" "$1" | perl -0pe '
		s{/\*.*?\*/}{}gs; s{^struct[^\n]*\n}{}; s{\}.*}{}s;
		s{\(\*(\w+)\)\([^)]*\)}{$1}g' | grep -oE '\w+ *(,|;)' |
		tr -d ' ,;'
}
while read -r header structure page; do
	names=$(fields "include/ulnet/$header" "$structure")
	[ -n "$names" ] || complain "struct $structure cannot be read"
	for name in $names; do
		grep -qE "^\.It .*\b$name\b" "man/man3/$page.3" ||
			complain "man/man3/$page.3: no $name"
	done
done <<-END
	service.h ulrpc_service_conf ulrpc_service_start
	service.h ulrpc_method_conf ulrpc_service_start
	rpc.h ulrpc_client_conf ulrpc_client_open
	rpc.h ulrpc_conf ulrpc_open
END

# What readers cannot look up.
said=$(grep -rnE 'requirements? [A-Z][0-9]' man README.md) &&
	complain "numbers of requirements: $said"
said=$(grep -rLE '^\.(Os ulnet$|so )' man --include='*.[1-8]')
[ -z "$said" ] || complain "no \".Os ulnet\": $said"

if ! command -v mandoc >/dev/null; then
	[ $bad = 0 ] || exit 1
	echo "mandoc is not installed: pages not checked"
	exit 77
fi
for page in $pages; do
	! head -n 1 "$page" | grep -q '^\.so ' || continue
	said=$(mandoc -T lint -W warning "$page" 2>&1)
	[ -z "$said" ] || complain "$said"
done

[ $bad != 0 ] || echo "$(wc -w <<<"$functions" | awk '{ print $1 / 2 }')" \
	"functions, $(wc -w <<<"$pages") pages"
exit $bad
