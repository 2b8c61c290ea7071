#pragma once
#include <sqlite3.h>

/* Binds a copy of the text: SQLITE_TRANSIENT is a cast, which isn't imported. */
static inline int csqlite_bind_text(sqlite3_stmt *statement, int place, const char *text, int bytes)
{
    return sqlite3_bind_text(statement, place, text, bytes, SQLITE_TRANSIENT);
}
