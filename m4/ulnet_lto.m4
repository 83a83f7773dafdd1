dnl SPDX-License-Identifier: BSD-3-Clause
dnl Link-time optimisation. Each of our libraries is linked into one object before
dnl hidden symbols become local there (Makefile.am, ONE_OBJECT): that is where its
dnl code is made, so that what is installed, also of the static libraries, is code
dnl that any linker takes. -flinker-output=nolto-rel says so, which gcc alone knows.
AC_DEFUN([ULNET_ENABLE_LTO], [
	AC_ARG_ENABLE([lto],
		[AS_HELP_STRING([--enable-lto],
			[optimise each library as a whole (needs gcc)])],
		[], [enable_lto=no])
	ONE_OBJECT_LDFLAGS=
	LTO_LDFLAGS=
	AS_IF([test "$enable_lto" != no], [
		CFLAGS="$CFLAGS -flto=auto"
		ONE_OBJECT_LDFLAGS="$CFLAGS -fPIC -flinker-output=nolto-rel"
		dnl What the optimiser says at a link is about code that it has put
		dnl together, and about no line of ours: that is shown, but with
		dnl --enable-werror, too, only what is said of a file is an error.
		LTO_LDFLAGS=-Wno-error
		AC_MSG_CHECKING([whether $CC links with -flto=auto -flinker-output=nolto-rel])
		AC_LANG_CONFTEST([AC_LANG_PROGRAM([], [])])
		AS_IF([$CC $CFLAGS -c -o conftest.one.o conftest.c >&AS_MESSAGE_LOG_FD 2>&1 &&
		       $CC -r -nostdlib $ONE_OBJECT_LDFLAGS -o conftest.o conftest.one.o >&AS_MESSAGE_LOG_FD 2>&1],
			[AC_MSG_RESULT([yes])],
			[AC_MSG_RESULT([no])
			 AC_MSG_ERROR([--enable-lto needs gcc 9 or later with its linker plugin])])
		rm -f conftest.c conftest.one.o conftest.o
	])
	AC_SUBST([ONE_OBJECT_LDFLAGS])
	AC_SUBST([LTO_LDFLAGS])
])
