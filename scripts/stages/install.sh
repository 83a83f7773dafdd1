# SPDX-License-Identifier: BSD-3-Clause
# Checks what make install leaves, and that it is enough to build programs with. For
# sourcing by ./check.
stage install touched '^. (include/|man/|tools/|services/|names/|etcd/|examples/|packaging/|debian/|tests/(install|packages|tools)/|rpc/server/serve/durable|rpc/store/|scripts/|README|configure|m4/|lib.*map|.*\.pc\.in|(.*/)?(Makefile\.am|module\.mk))'

# The headers' functions and the libraries' symbols are the same; protoc-c's are
# not marked in its headers, and are not looked at.
check_exports() { # LIBRARY HEADER...
	local library=$1

	shift
	test -s "$BUILD/installed/lib/$library.so" && [ $# -gt 0 ] && diff <(cd "$SRC/include/ulnet" && "$SRC/scripts/public_functions.sh" "$@" |
		sed -n 's/^extern //p' | LC_ALL=C sort) \
		<(nm -D --defined-only "$BUILD/installed/lib/$library.so" |
			awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' |
			grep -v '^ulrpc__' | LC_ALL=C sort)
}

# Which headers declare the functions of which library.
ctl_headers=(control.h)
etcd_headers=(etcd.h)
lab_headers=(sim.h)
rpc_headers=(context.h intercept.h keys.h replicas.h rpc.h service.h spans.h store.h stream.h stub.h)
net_headers() {
	ls "$SRC/include/ulnet" | grep '\.h$' |
		grep -vxF "$(printf '%s\n' "${ctl_headers[@]}" "${lab_headers[@]}" \
			"${etcd_headers[@]}" "${rpc_headers[@]}")"
}

# A program that makes calls, and nothing else, loads neither the configuration nor a
# parser of YAML; and the laboratory is in no other library.
check_needed() {
	local at=$BUILD/installed/lib needed names

	needed=$(ldd "$at/libulrpc.so") && names=$(nm "$at"/libul{net,netctl,rpc}.so) &&
		! grep -E 'libyaml|libcurl|libulnet(ctl|lab|etcd)' <<<"$needed" &&
		! grep -E ' (lnet_sim_|simlnd|simqp|env_sim|audit_)' <<<"$names"
}

# Every header can be the first one, and C++ takes it, too.
check_headers() {
	local header lang

	for header in "$BUILD"/installed/include/ulnet/*.h; do
		for lang in c c++; do
			echo "#include <ulnet/${header##*/}>" |
				clang -x $lang -fsyntax-only -Wall -Wextra \
				-pedantic -Werror -I "$BUILD/installed/include" \
				- || return 1
		done
	done
}

# What is installed is enough for a .proto that imports ours, and its program.
check_protos() {
	local dir=$BUILD/protos include

	rm -rf "$dir" && mkdir "$dir" && cd "$dir" &&
		export PKG_CONFIG_PATH="$BUILD/installed/lib/pkgconfig" &&
		include=$(pkg-config --variable=includedir ulrpc) || return 1
	cp "$SRC/tests/install/job.proto" "$SRC/tests/install/job.c" . &&
		protoc-c -I"$include" -I. --c_out=. job.proto &&
		gcc -Wall -Wextra -Werror job.c job.pb-c.c -o job \
			$(pkg-config --cflags --libs ulrpc) &&
		LD_LIBRARY_PATH=$BUILD/installed/lib timeout 60 ./job
}

# build_stranger SOURCE LIBRARIES: builds SOURCE in a folder of its own, as a user would.
build_stranger() {
	local name=${1##*/} dir libraries

	read -ra libraries <<<"$2"
	name=${name%.c} dir=$BUILD/$name
	rm -rf "$dir" && mkdir "$dir" && cp "$SRC/$1" "$dir" &&
		cd "$dir" && export PKG_CONFIG_PATH="$BUILD/installed/lib/pkgconfig" &&
		gcc -Wall -Wextra -pedantic -Werror "$name.c" -o "$name" \
			$(pkg-config --cflags --libs "${libraries[@]}")
}

run_hello() {
	cd / && LD_LIBRARY_PATH=$BUILD/installed/lib timeout 60 "$BUILD/hello/hello"
}

# A test of calls, linked with the laboratory; and linked in the wrong order, which it
# must notice.
check_lab() {
	local dir=$BUILD/lab

	export PKG_CONFIG_PATH=$BUILD/installed/lib/pkgconfig
	export LD_LIBRARY_PATH=$BUILD/installed/lib
	rm -rf "$dir" && mkdir "$dir" && cd "$dir" &&
		gcc -Wall -Werror "$SRC/tests/install/lab.c" -o lab \
			$(pkg-config --cflags --libs ulnetlab ulrpc) &&
		gcc -Wall -Werror "$SRC/tests/install/lab.c" -o wrong \
			$(pkg-config --cflags --libs ulrpc ulnetlab) &&
		timeout 60 ./lab && {
		timeout 60 ./wrong
		[ $? = 2 ]
	}
}

# Follows the tutorial as a newcomer does, who has the page and what is installed.
run_tutorial() {
	export PKG_CONFIG_PATH=$BUILD/installed/lib/pkgconfig
	export LD_LIBRARY_PATH=$BUILD/installed/lib
	rm -rf "$BUILD/tutorial"
	bash "$SRC/tests/install/tutorial.sh" run \
		"$BUILD/installed/share/man/man7/ulrpc_tutorial.7" \
		"$BUILD/tutorial"
}

run_readme() {
	rm -rf "$BUILD/readme"
	bash "$SRC/tests/install/readme.sh" "$SRC/README.md" "$BUILD/readme" \
		"$BUILD/installed"
}

# A durable service, whose server is killed.
run_ledger() {
	export PKG_CONFIG_PATH=$BUILD/installed/lib/pkgconfig
	export LD_LIBRARY_PATH=$BUILD/installed/lib
	local kills=3

	[ $long = no ] || kills=50
	bash "$SRC/tests/install/ledger.sh" "$SRC/examples/ledger" \
		"$BUILD/ledger" $kills
}

# A program that is linked with a shared library needs no other libraries; one that is
# linked with the static library needs all of them.
check_pkg_config() {
	local flag shared static flags=(-lev -lz)

	export PKG_CONFIG_PATH="$BUILD/installed/lib/pkgconfig"
	shared=" $(pkg-config --libs ulnet) " &&
		static=" $(pkg-config --libs --static ulnet) " || return 1
	echo "shared:$shared"
	echo "static:$static"
	! grep -q '^VERBS_LIBS = .' "$BUILD/release/Makefile" ||
		flags+=(-libverbs -lrdmacm)
	for flag in "${flags[@]}"; do
		[[ $shared != *" $flag "* && $static == *" $flag "* ]] ||
			return 1
	done
	[[ $shared == *" -lulnet "* ]] || return 1
	shared=" $(pkg-config --libs ulnetctl) " &&
		static=" $(pkg-config --libs --static ulnetctl) " || return 1
	echo "ulnetctl:$shared"
	[[ $shared == *" -lulnetctl "* && $shared == *" -lulnet "* &&
		$shared != *" -lyaml "* && $static == *" -lyaml "* ]] || return 1
	shared=" $(pkg-config --libs ulrpc) " || return 1
	echo "ulrpc:$shared"
	[[ $shared == *" -lulrpc "* && $shared == *" -lulnet "* &&
		$shared == *" -lprotobuf-c "* && $shared != *" -lisal "* ]]
}

# Static libraries, in a prefix of their own. Their programs are linked with them,
# which shows names that the libraries and the programs both have. ccache has their
# code from the shared ones.
install_static() {
	CONFIG_CACHE=$BUILD/config.cache.gcc \
		tree_configure static CC=gcc --enable-werror \
		--disable-shared --enable-static --with-pic \
		--prefix="$BUILD/installed-static" &&
		rm -rf "$BUILD/installed-static" && tree_make static install
}

# The static libraries have no names but public ones, and programs can be linked with
# them.
check_static() {
	local at=$BUILD/installed-static dir=$BUILD/static-programs names needed

	names=$(nm -g --defined-only "$at"/lib/libul{netlab,netctl,netetcd,rpc}.a |
		awk 'NF == 3 { print $3 }' | LC_ALL=C sort) || return 1
	! grep -vE '^(LNet|lnet_|ulrpc_)' <<<"$names" || return 1
	! uniq -d <<<"$names" | grep . || return 1
	"$SRC/scripts/public_functions.sh" "$SRC"/include/ulnet/*.h |
		sed -n 's/^extern //p' | LC_ALL=C sort |
		comm -23 - <(echo "$names") | { ! grep .; } || return 1
	rm -rf "$dir" && mkdir "$dir" && cd "$dir" &&
		export PKG_CONFIG_PATH=$at/lib/pkgconfig || return 1
	cp "$SRC"/tests/install/{hello.c,job.c,job.proto} . &&
		protoc-c -I"$at/include" -I. --c_out=. job.proto &&
		gcc -Werror hello.c -o hello \
			$(pkg-config --static --cflags --libs ulnetlab) &&
		gcc -Werror job.c job.pb-c.c -o job \
			$(pkg-config --static --cflags --libs ulrpc) &&
		needed=$(ldd hello job) && ! grep ulnet <<<"$needed" && timeout 60 ./hello &&
		timeout 60 ./job && "$at/sbin/lnetd" --version
}

# All manual pages of the list are installed, and nothing else.
check_manuals() {
	diff <(sed -n 's/^dist_man_MANS += %D%.//p' "$SRC/man/module.mk" |
		LC_ALL=C sort) \
		<(cd "$BUILD/installed/share/man" && find . -type f -size +0 |
			sed 's,^./,,' | LC_ALL=C sort) &&
		test -s "$BUILD/installed/share/man/man8/lnetd.8"
}

# Makes folders like those of a build, with the programs that were installed.
use_installed() {
	dir=$BUILD/programs
	rm -rf "$dir" && mkdir "$dir" && cd "$dir" &&
		mkdir -p tools/bin examples &&
		ln -s "$BUILD"/installed/sbin/* "$BUILD"/installed/bin/* tools/bin &&
		ln -s "$BUILD/depot/depot" "$BUILD/doorman/doorman" \
			"$BUILD/lines/lines" examples
}

run_installed() {
	local dir

	use_installed || return 1
	srcdir=$SRC bash "$SRC/tests/tools/tcp.sh" &&
		test -s "$BUILD/installed/share/bash-completion/completions/lnetctl"
}

run_installed_demo() {
	local dir

	use_installed || return 1
	export PKG_CONFIG_PATH=$BUILD/installed/lib/pkgconfig
	export LD_LIBRARY_PATH=$BUILD/installed/lib
	timeout 600 "$SRC/examples/demo_tcp.sh" "$dir" &&
		timeout 600 "$SRC/examples/demo_rpc.sh" "$dir" &&
		timeout 600 "$SRC/examples/demo_routes.sh" "$dir" &&
		timeout 600 "$SRC/examples/demo_security.sh" "$dir" &&
		timeout 600 "$SRC/examples/demo_lst.sh" "$dir" &&
		timeout 600 "$SRC/examples/demo_o2ibcalc.sh" "$dir"
}

stage_install() {
	release_build || return 0
	rm -rf "$BUILD/installed"
	step "make install" tree_make release install || return 0
	step "all of it is in the packages" "$SRC/tests/packages/files.sh" \
		"$BUILD/installed" || true
	step "exported symbols of libulnet" \
		check_exports libulnet $(net_headers) || true
	step "exported symbols of libulnetlab" \
		check_exports libulnetlab $(net_headers) "${lab_headers[@]}" || true
	step "exported symbols of libulnetctl" \
		check_exports libulnetctl "${ctl_headers[@]}" || true
	step "exported symbols of libulnetetcd" \
		check_exports libulnetetcd "${etcd_headers[@]}" || true
	step "exported symbols of libulrpc" \
		check_exports libulrpc "${rpc_headers[@]}" || true
	step "no library has more than its own" check_needed || true
	step "messages for users" check_protos || true
	step "headers alone, C and C++" check_headers || true
	step "manual pages" check_manuals || true
	step "what pkg-config says" check_pkg_config || true
	step "program built with pkg-config" \
		build_stranger tests/install/hello.c ulnetlab || return 0
	step "that program runs" run_hello || true
	step "a test of calls, with the laboratory" check_lab || true
	! step "make install, static libraries" install_static ||
		step "programs built with them" check_static || true
	step "the tutorial's service, from its page" run_tutorial || true
	step "the service and client of README" run_readme || true
	step "a durable service that is killed" run_ledger || true
	step "crash built with pkg-config" \
		build_stranger examples/crash.c "ulnetlab ulrpc" || true
	step "depot built with pkg-config" build_stranger examples/depot.c ulnetctl ||
		return 0
	step "doorman built with pkg-config" \
		build_stranger examples/doorman.c ulrpc || return 0
	step "lines built with pkg-config" \
		build_stranger examples/lines.c ulrpc || return 0
	step "names built with pkg-config" \
		build_stranger examples/names.c "ulrpc ulnetetcd" || return 0
	step "several built with pkg-config" \
		build_stranger examples/several.c ulrpc || return 0
	step "lnetd and lnetctl, installed" run_installed || true
	step "demo of what is installed" run_installed_demo || true
	step "make uninstall" tree_make release uninstall || return 0
	step "nothing is left" test -z \
		"$(find "$BUILD/installed" ! -type d)" || true
}
