# Installed headers.
ulnetincludedir = $(includedir)/ulnet
ulnetinclude_HEADERS =
ulnetinclude_HEADERS += %D%/ulnet/nid.h
