libservices_a_SOURCES += %D%/echo.h %D%/echo_server.c %D%/echo_client.c
dist_noinst_DATA += %D%/echo.proto
protos_made += %D%/echo.pb-c.h %D%/echo.pb-c.c
nodist_libservices_a_SOURCES += %D%/echo.pb-c.c
