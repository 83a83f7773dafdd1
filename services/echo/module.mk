libservices_a_SOURCES += %D%/echo.c
dist_noinst_DATA += %D%/echo.proto
protos_made += %D%/echo.pb-c.h %D%/echo.pb-c.c
nodist_libservices_a_SOURCES += %D%/echo.pb-c.c
