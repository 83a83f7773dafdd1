# NIDs: values, texts, lists of them.
libulnetcore_a_SOURCES += %D%/nid.c %D%/nid.h %D%/nid_priv.h
libulnetcore_a_SOURCES += %D%/nidlist.c
libulnetcore_a_SOURCES += %D%/range.c %D%/range.h
