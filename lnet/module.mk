# LNet as users open it; its rooms have folders.
libulnetcore_a_SOURCES += %D%/open.c
