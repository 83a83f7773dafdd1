# Installed headers.
ulnetincludedir = $(includedir)/ulnet
ulnetinclude_HEADERS =
ulnetinclude_HEADERS += %D%/ulnet/nid.h
ulnetinclude_HEADERS += %D%/ulnet/lnet.h
ulnetinclude_HEADERS += %D%/ulnet/control.h
ulnetinclude_HEADERS += %D%/ulnet/loop.h
ulnetinclude_HEADERS += %D%/ulnet/sim.h
