# SPDX-License-Identifier: BSD-3-Clause
# Makes deliberate mistakes (tests/mutants/), each of which a campaign or a unit test
# must catch: mistakes in files that were changed, and mistakes whose campaign or test
# was changed; with --long all. For sourcing by ./check.
stage mutations touched '^. (base|etcd|lnet|lnd|names|rpc|secure|sim|tests/(sim|unit|mutants))/'

# Was a file changed that the mistake is in, or one of what must catch it?
mistake_is_touched() { # NAME
	local patch=tests/mutants/$1.patch files room catcher=tests/sim/

	files=$(sed -n 's,^--- a/,,p' "$SRC/$patch" | paste -sd '|')
	# The folder of tests/unit/lnet_path_test is tests/unit/lnet/path/.
	room=$(sed -n 's,^caught-by: tests/unit/\([^ ]*\)_test.*,\1,p' "$SRC/$patch")
	[ -z "$room" ] || catcher=tests/unit/${room//_//}/
	is_touched "^. ($files|$catcher.*\.[ch]|$patch|tests/mutants/run.sh)\$"
}

mistakes() {
	local patch name

	for patch in "$SRC"/tests/mutants/*.patch; do
		name=$(basename "$patch" .patch)
		if [ $long = yes ] || mistake_is_touched "$name"; then
			echo "$name"
		fi
	done
}

run_mutant() { # NAME
	"$SRC/tests/mutants/run.sh" --prepared "$BUILD/release" "$1"
}

stage_mutations() {
	local names all=("$SRC"/tests/mutants/*.patch)

	mapfile -t names < <(mistakes)
	echo "${#names[@]} of ${#all[@]} mistakes"
	[ ${#names[@]} -gt 0 ] || {
		skip "mistakes" "none is in what was changed $touched_since"
		return 0
	}
	release_configure || return 0
	step "nothing is caught without a mistake" "$SRC/tests/mutants/run.sh" \
		--prepare "$BUILD/release" "${names[@]}" || return 0
	at_once "caught:" run_mutant "${names[@]}"
}
