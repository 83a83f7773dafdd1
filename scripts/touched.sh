# SPDX-License-Identifier: BSD-3-Clause
# What a change touches. For sourcing.
#
#	touched		file with a line per path: A, D, M or R (added, deleted,
#			modified, renamed), a space, and the path
#	touched_since	text: since when
#
# A change is what is not committed, and all commits since it left the main branch:
# $ULNET_BASE, or the merge base with origin's, or with "main". On that branch itself,
# all that came to it in the day before its last commit. Where neither is known, or
# there is no git, everything counts as changed.

touched_find() { # TOP FILE
	local top=$1 base=${ULNET_BASE:-} main last
	local git=(git -C "$top" -c core.quotePath=false)
	touched=$2

	for main in origin/HEAD origin/main main; do
		# Branches of a repository that the tree only lies in do not count.
		[ -z "$base" ] && [ -z "$("${git[@]}" rev-parse --show-prefix \
			2>/dev/null)" ] || break
		base=$("${git[@]}" merge-base HEAD "$main" 2>/dev/null) || base=
	done
	if [ -z "$base" ]; then
		touched_since="as far as is known"
		(cd "$top" && find . -name .git -prune -o -type f \
			! -path './build*' -print | sed 's,^\./,A ,') >"$touched"
		return 0
	fi
	if [ "$base" = "$("${git[@]}" rev-parse HEAD)" ]; then
		last=$("${git[@]}" log -1 --format=%ct)
		base=$("${git[@]}" rev-list -1 --first-parent \
			--before=$((last - 86400)) HEAD)
		: "${base:=$("${git[@]}" hash-object -t tree /dev/null)}"
	fi
	touched_since="since ${base:0:12}"
	{
		"${git[@]}" diff --name-status -M "$base" --
		"${git[@]}" ls-files --others --exclude-standard |
			sed 's/^/A\t/'
	} | awk -F '\t' '{
		print substr($1, 1, 1), $NF
		if (NF == 3)
			print "D", $2
	}' | sort -u >"$touched"
}

# is_touched REGEX: does a line of the file match? "^. x/" stands for all in folder x.
is_touched() {
	grep -qE "$1" "$touched"
}
