#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: layering.sh TREE
# Dependencies point down only. Prints every #include that does not, and how many
# it looked at; fails if there is a wrong one, or none at all.
set -euo pipefail
cd "$1"

# folder	what its files may include of ours (regular expression)
rules=(
	'include/ulnet	ulnet/'
	'base	base/'
	'lnd/o2iblnd/simqp	base/|ulnet/|lnd/lnd\.h|lnd/o2iblnd/verbs\.h|@/'
	'lnd/[a-z0-9_]+	base/|ulnet/|lnd/(lnd|netif|silence)\.h|@/'
	'lnd	base/|ulnet/|lnd/[^/]*$'
	'lnet/nid	base/|ulnet/|@/'
	'lnet/policy	base/|ulnet/|@/'
	'lnet/core	base/|ulnet/|@/'
	'lnet/portal	base/|ulnet/|@/|lnet/core/'
	'lnet/net	base/|ulnet/|lnd/lnd\.h|@/|lnet/(core|nid|portal)/'
	'lnet/peer	base/|ulnet/|@/|lnet/(core|nid|policy|portal|net)/'
	'lnet/route	base/|ulnet/|@/|lnet/(core|nid|portal|net|peer)/'
	'lnet/path	base/|ulnet/|@/|lnet/(core|nid|policy|portal|net|peer|route)/'
	'lnet/message	base/|ulnet/|lnd/lnd\.h|@/|lnet/(core|nid|portal|net|peer|route|path)/'
	'lnet/discovery	base/|ulnet/|@/|lnet/(core|nid|portal|net|peer|route|path|message)/'
	'lnet/fault	base/|ulnet/|@/|lnet/(core|nid|portal|net|peer|route|path|message)/'
	'lnet/node	base/|ulnet/|lnd/lnd\.h|lnet/'
	'config	base/|ulnet/|config/'
	'rpc	base/|ulnet/|rpc/'
	'rpc/wire	base/|ulnet/|@/|rpc/[^/]*$'
	'rpc/stub	base/|ulnet/|@/|rpc/[^/]*$'
	'rpc/stats	base/|ulnet/|@/|rpc/[^/]*$|rpc/wire/'
	'rpc/bulk	base/|ulnet/|@/|rpc/[^/]*$|rpc/(wire|stub|stats)/'
	'rpc/(client|server)	base/|ulnet/|@/|rpc/[^/]*$|rpc/(wire|bulk|stats)/'
	'sim	base/|ulnet/|lnd/|lnet/|sim/'
	'services/[a-z0-9_]+	ulnet/|@/|services/[^/]*$'
	'services	ulnet/|services/'
	'tools	ulnet/|tools/|services/(services|lst/(lst|console|list))\.h$'
	'examples(/[a-z0-9_]+)?	ulnet/|examples/'
)
# What is ours, when it is included with <>.
ours='(base|lnet|lnd|config|sim|rpc|services|tools|ulnet|tests|bench|examples)/'

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
		IFS=$'\t' read -r folder may <<<"$rule"
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
done < <(find include base lnet lnd config rpc sim services tools examples \
	-name '*.[ch]' ! -name '*.pb-c.[ch]' -print0 2>/dev/null |
	xargs -0 grep -HnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]')

echo "$looked includes, $wrong wrong"
[ "$wrong" = 0 ] && [ "$looked" -gt 0 ]
