# A finished run in R, and its tables.

open_run <- function(directory) {
  record <- file.path(directory, "run.json")
  if (!file.exists(record)) refuse("'", directory, "' is no finished run: it has no run.json")
  directory <- normalizePath(directory)
  info <- jsonlite::fromJSON(record, simplifyVector = FALSE)
  solutions <- file.path(directory, "solutions.csv")
  fit <- list(
    call = NULL, formula = NULL, directory = directory, info = info,
    summary = read_table(file.path(directory, "summary.csv")),
    solutions = if (file.exists(solutions)) read_table(solutions),
    warnings = with_rows_of_r(as.character(unlist(info$warnings))), notes = with_rows_of_r(as.character(unlist(info$notes)))
  )
  structure(fit, class = "mmgibbs")
}

run_table <- function(fit, name) {
  path <- file.path(fit$directory, paste0(name, ".csv"))
  if (!file.exists(path)) {
    known <- sub("[.]csv$", "", list.files(fit$directory, pattern = "[.]csv$"))
    refuse("run_table: the run has no table '", name, "'; it has ", paste(known, collapse = ", "))
  }
  read_table(path)
}

solutions <- function(fit, term = NULL, trait = NULL) {
  if (is.null(fit$solutions)) refuse("solutions: '", fit$directory, "' has no solutions.csv; expected the run of a mixed model")
  rows <- fit$solutions
  for (key in c("term", "trait")) {
    wanted <- get(key)
    unknown <- setdiff(wanted, rows[[key]])
    if (length(unknown)) {
      refuse(key, ": there is no ", key, " '", unknown[[1]], "'; there are ", paste(unique(fit$solutions[[key]]), collapse = ", "))
    }
    if (!is.null(wanted)) rows <- rows[rows[[key]] %in% wanted, , drop = FALSE]
  }
  rownames(rows) <- NULL
  rows
}

breeding_values <- function(fit, term = NULL, trait = NULL) {
  if (is.null(term)) {
    kinds <- fit$info$relationships
    term <- names(kinds)[vapply(kinds, function(kind) isTRUE(kind$related), logical(1))]
    if (!length(term)) refuse("breeding_values: no effect of the model has related levels; solutions() has all effects")
  }
  rows <- solutions(fit, term, trait)
  rows <- rows[rows$effect != "group", , drop = FALSE]
  rows <- rows[order(-rows$mean), , drop = FALSE]
  rownames(rows) <- NULL
  rows
}

variances <- function(fit) {
  drawn <- was_drawn(fit)
  columns <- c("parameter", "mean", "sd", if (drawn) c("hpd_low", "hpd_high", "ess_bulk", "rhat"))
  rows <- fit$summary[columns]
  if (!drawn) names(rows)[2:3] <- c("estimate", "se")
  rows
}

was_drawn <- function(fit) !all(is.na(fit$summary$ess_bulk))

method_name <- function(fit) {
  method <- fit$info$method
  if (is.null(method)) method <- fit$info$analysis$sampler$method
  if (is.null(method)) "gibbs" else method
}

random_terms <- function(fit) c(names(fit$info$analysis$model$random), names(fit$info$analysis$model$markers))
