/* SPDX-License-Identifier: MIT
 *
 * Makes `schema` of the file that SCHEMA_FILE names, written as sqlite_columns.def says.
 */
#include "base/sqlite_writer.h"

#define TABLE(name, ...) static const struct sqlite_column columns_##name[] = {
#define COLUMN(name, type, what, kind, value) {#name, type, what},
#define END_TABLE                                                                                  \
  }                                                                                                \
  ;
#include SCHEMA_FILE

static const struct sqlite_table schema_tables[] = {
#define TABLE(name, what, ...) {#name, what, columns_##name, LENGTH_OF(columns_##name)},
#include SCHEMA_FILE
};

static const struct sqlite_view schema_views[] = {
#define VIEW(name, what, select) {#name, what, select},
#include SCHEMA_FILE
};

enum schema_table {
#define TABLE(name, ...) SCHEMA_TABLE_##name,
#include SCHEMA_FILE
};

static const struct sqlite_schema schema = {
    .tables = schema_tables,
    .views = schema_views,
    .n_tables = LENGTH_OF(schema_tables),
    .n_views = LENGTH_OF(schema_views),
    .documentation = SCHEMA_TABLE_documentation,
};
