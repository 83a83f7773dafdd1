# SPDX-License-Identifier: BSD-3-Clause
# What a change touches. For sourcing.
#
#	touched		file with a line per path: A, D, M or R (added, deleted,
#			modified, renamed), a space, and the path
#	touched_since	text: since when
#
# A change is what is not committed, and all commits since it left the main branch:
# $ULNET_BASE, or the merge base with origin's. On that branch itself, all that
# came to it in the day before its last commit.

touched_find() { # TOP FILE
	local top=$1 base last
	touched=$2

	if ! git -C "$top" rev-parse -q --verify HEAD >/dev/null 2>&1; then
		touched_since="there is no git: everything counts as changed"
		(cd "$top" && find . -type f ! -path './build/*' |
			sed 's,^\./,A ,') >"$touched"
		return 0
	fi
	base=${ULNET_BASE:-$(git -C "$top" merge-base HEAD origin/HEAD \
		2>/dev/null)} || base=
	if [ -z "$base" ] || [ "$base" = "$(git -C "$top" rev-parse HEAD)" ]; then
		last=$(git -C "$top" log -1 --format=%ct)
		base=$(git -C "$top" rev-list -1 --before=$((last - 86400)) HEAD)
		: "${base:=$(git -C "$top" hash-object -t tree /dev/null)}"
	fi
	touched_since="since ${base:0:12}"
	{
		git -C "$top" diff --name-status -M "$base" --
		git -C "$top" ls-files --others --exclude-standard |
			sed 's/^/A\t/'
	} | awk -F '\t' '{
		print substr($1, 1, 1), $NF
		if (NF == 3)
			print "D", $2
	}' | sort -u >"$touched"
}

# is_touched REGEX: of a line of the file; "^. x/" is all in folder x.
is_touched() {
	grep -qE "$1" "$touched"
}
