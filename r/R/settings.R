# Settings of an analysis for the command line of the program, as JSON.

# --set KEY=VALUE for each setting; values are JSON, which is YAML.
setting_arguments <- function(settings) {
  if (length(settings) && (is.null(names(settings)) || any(!nzchar(names(settings))))) {
    refuse("settings: expected a named list such as list(sampler.samples = 2000)")
  }
  unlist(lapply(names(settings), function(key) {
    c("--set", paste0(key, "=", json_text(settings[[key]])))
  }))
}

# A value as JSON, numbers with all their digits: a list with names, or an empty one, is a mapping, a matrix a list of rows.
json_text <- function(x) {
  if (is.null(x)) return("null")
  if (is.matrix(x)) return(json_list(apply(x, 1, function(row) json_list(json_cells(row)))))
  is_mapping <- !is.null(names(x)) || (is.list(x) && !length(x))
  if (is.list(x)) values <- vapply(x, json_text, "") else values <- json_cells(x)
  if (is_mapping) return(paste0("{", paste(json_cells(names(x)), values, sep = ":", collapse = ","), "}"))
  if (length(x) == 1 && !is.list(x)) values else json_list(values)
}

json_list <- function(values) paste0("[", paste(values, collapse = ","), "]")

json_cells <- function(x) {
  if (!length(x)) return(character())
  if (is.logical(x)) return(ifelse(is.na(x), "null", ifelse(x, "true", "false")))
  if (is.numeric(x)) return(ifelse(is.na(x), "null", number_text(as.numeric(x))))
  vapply(enc2utf8(as.character(x)), function(text) as.character(jsonlite::toJSON(text, auto_unbox = TRUE)), "", USE.NAMES = FALSE)
}
