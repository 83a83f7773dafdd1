#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Which cache lines several threads write, says the compiler of the structures' own
# declarations: a field that is atomic, or a mutex, is written by any thread. In
# structures that a call or a message passes, such a field has a cache line of its own;
# or cache_lines.txt has it, with a reason: "STRUCT.FIELD why". Otherwise each write
# would take the line away from the CPT that uses the fields beside it. Fields of the type
# stat_t do not count, since only their owner writes them. Lines are counted from the
# beginning of a structure, as lines_calloc() places it.
set -uo pipefail
top=$(cd "${srcdir:-.}" && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/ulnet-lines.XXXXXX")
trap 'rm -rf "$dir"' EXIT
# What a call or a message passes, on its CPT and elsewhere.
structures='loop shard ulrpc service_cpt ulrpc_service exports export ulrpc_request
	inbox_buffer whole_node whole_cpt lnet_ni ni_cpt sock_ni sock_cpt ev_env'

cat >"$dir/lines.awk" <<'AWK'
function flush_die() {
	if (die == "")
		return
	tag[die] = t; name[die] = n; type[die] = ty; size[die] = sz
	if (t == "member" && parent != "") {
		members[parent] = members[parent] " " die
		loc[die] = lo
	}
	if (t == "subrange_type" && parent != "")
		count[parent] = (parent in count ? count[parent] : 1) * (ub + 1)
	if ((t == "structure_type") && n != "" && !decl && !((n, sz) in seen)) {
		seen[n, sz] = 1
		whole[++nwhole] = die
	}
	die = ""
}
function width(d,   k) {
	k = tag[d]
	if (k == "pointer_type")
		return 8
	if (k == "array_type")
		return width(type[d]) * (d in count ? count[d] : 0)
	if (size[d] != "")
		return size[d]
	return type[d] == "" ? 0 : width(type[d])
}
# Notes the field @label of @bytes at @at.
function put(label, at, bytes, shared,   l) {
	for (l = int(at / 64); l <= int((at + bytes - 1) / 64) && bytes; l++) {
		if (l > last) last = l
		if (shared)
			ours[l] = ours[l] " " label
		else
			rest[l] = rest[l] " " label
	}
}
function field(label, d, at, bytes,   k) {
	k = tag[d]
	if (k == "typedef" && name[d] == "stat_t")
		put(label, at, bytes, 0) # one thread writes it
	else if (k == "atomic_type" || (k == "typedef" &&
		 name[d] ~ /^pthread_(mutex|cond)_t$/))
		put(label, at, bytes, 1)
	else if (k ~ /^(typedef|const_type|volatile_type)$/ && type[d] != "")
		field(label, type[d], at, bytes)
	else if (k == "array_type")
		field(label, type[d], at, bytes)
	else if ((k == "structure_type" || k == "union_type") && members[d] != "")
		inside(label, d, at)
	else
		put(label, at, bytes, 0)
}
function inside(prefix, s, at,   i, m, c, x) {
	c = split(members[s], m, " ")
	for (i = 1; i <= c; i++) {
		x = name[m[i]]
		field(prefix (prefix != "" && x != "" ? "." : "") x, type[m[i]],
		      at + loc[m[i]], width(type[m[i]]))
	}
}
function unique(list,   i, m, c, had, out) {
	c = split(list, m, " ")
	for (i = 1; i <= c; i++)
		if (!(m[i] in had)) {
			had[m[i]] = 1
			out = out " " m[i]
		}
	return out
}
/^ <[0-9a-f]+><[0-9a-f]+>: Abbrev Number: [0-9]+ \(DW_TAG_/ {
	flush_die()
	split($1, p, /[<>]/)
	depth = p[2]
	die = p[4]
	t = $0
	sub(/.*\(DW_TAG_/, "", t); sub(/\).*/, "", t)
	n = ty = sz = lo = ""; ub = 0; decl = 0
	lo = 0
	at_depth[depth] = die
	parent = depth > 0 ? at_depth[depth - 1] : ""
	next
}
/DW_AT_name/ { n = $NF }
/DW_AT_type/ { ty = $NF; gsub(/[<>]|0x/, "", ty) }
/DW_AT_byte_size/ { sz = $NF }
/DW_AT_data_member_location/ { lo = $NF }
/DW_AT_upper_bound/ { ub = $NF }
/DW_AT_declaration/ { decl = 1 }
END {
	flush_die()
	for (w = 1; w <= nwhole; w++) {
		split("", ours); split("", rest); last = -1
		inside("", whole[w], 0)
		for (l = 0; l <= last; l++) {
			c = ours[l] != "" && rest[l] != "" ? split(ours[l], m, " ") : 0
			for (i = 1; i <= c; i++)
				print name[whole[w]] "." m[i]
		}
	}
}
AWK

for lib in ulnet ulrpc; do
	readelf --debug-dump=info ".libs/lib$lib.so" 2>/dev/null | awk -f "$dir/lines.awk"
done | awk -F. -v structures="$structures" '
	BEGIN { split(structures, s, " "); for (i in s) wanted[s[i]] = 1 }
	$1 in wanted' | LC_ALL=C sort -u >"$dir/found"
[ -s "$dir/found" ] || {
	echo "the libraries have no debugging information"
	exit 77
}
sed 's/#.*//' "$top/tests/cache_lines.txt" | awk 'NF { print $1 }' |
	LC_ALL=C sort -u >"$dir/known"
awk '!/^#/ && NF == 1 { print "cache_lines.txt: " $1 " has no reason"; bad = 1 }
	END { exit bad }' "$top/tests/cache_lines.txt" || exit 1
new=$(LC_ALL=C comm -23 "$dir/found" "$dir/known")
echo "$(wc -l <"$dir/found") fields"
[ -z "$new" ] || {
	printf '%s\nshare their cache lines with fields of an owner\n' "$new"
	exit 1
}
