# A finished run in R: its tables, and what R asks of a fitted model.

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
    warnings = as.character(unlist(info$warnings)), notes = as.character(unlist(info$notes))
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

print.mmgibbs <- function(x, digits = 4, ...) {
  cat(facts(x), sep = "\n")
  cat("\n")
  print(format_table(variances(x), digits), row.names = FALSE, right = TRUE)
  for (text in x$warnings) cat("\nwarning: ", text, "\n", sep = "")
  invisible(x)
}

facts <- function(fit) {
  info <- fit$info
  records <- info$data$records$used
  method <- c(gibbs = "Gibbs sampling", reml = "REML", blup = "BLUP")[[method_name(fit)]]
  counts <- c(
    if (!is.null(records)) paste(format(records, big.mark = ","), "records"),
    if (!is.null(info$data$animals)) paste(format(info$data$animals, big.mark = ","), "animals"),
    if (!is.null(info$kept_draws_per_chain)) paste(format(info$kept_draws_per_chain, big.mark = ","), "kept draws per chain"),
    if (!is.null(info$log_likelihood)) paste("log likelihood", format(info$log_likelihood, digits = 8))
  )
  model <- if (inherits(fit$formula, "formula")) paste(deparse(fit$formula), collapse = " ") else fit$formula
  c(
    paste("Model:", if (is.null(model)) info$name else model),
    paste0("Method: ", method, "; ", paste(counts, collapse = ", ")),
    paste("Run folder:", fit$directory)
  )
}

format_table <- function(table, digits) {
  numeric <- vapply(table, is.numeric, logical(1))
  table[numeric] <- lapply(table[numeric], function(x) ifelse(is.na(x), "", formatC(x, digits = digits, format = "g", flag = "#")))
  table
}

summary.mmgibbs <- function(object, ...) {
  fixed <- NULL
  if (!is.null(object$solutions)) {
    rows <- object$solutions[!object$solutions$term %in% random_terms(object), , drop = FALSE]
    fixed <- rows[intersect(c("term", "trait", "level", "mean", "sd"), names(rows))]
    rownames(fixed) <- NULL
  }
  structure(
    list(facts = facts(object), variances = variances(object), fixed = fixed, warnings = object$warnings, notes = object$notes),
    class = "summary.mmgibbs"
  )
}

print.summary.mmgibbs <- function(x, digits = 4, rows = 20, ...) {
  cat(x$facts, sep = "\n")
  cat("\nVariances\n")
  print(format_table(x$variances, digits), row.names = FALSE, right = TRUE)
  if (!is.null(x$fixed) && nrow(x$fixed)) {
    cat("\nFixed effects\n")
    print(format_table(head(x$fixed, rows), digits), row.names = FALSE, right = TRUE)
    if (nrow(x$fixed) > rows) cat("...", nrow(x$fixed) - rows, "more rows in summary(fit)$fixed\n")
  }
  for (text in x$warnings) cat("\nwarning: ", text, "\n", sep = "")
  for (text in x$notes) cat("\nnote: ", text, "\n", sep = "")
  invisible(x)
}

as.data.frame.mmgibbs <- function(x, row.names = NULL, optional = FALSE, ...) solutions(x)

coef.mmgibbs <- function(object, ...) {
  rows <- solutions(object)
  rows <- rows[!rows$term %in% random_terms(object), , drop = FALSE]
  several <- length(unique(object$solutions$trait)) > 1
  names <- ifelse(is.na(rows$level) | !nzchar(rows$level), rows$term, paste0(rows$term, ":", rows$level))
  setNames(rows$mean, if (several) paste0(rows$trait, ".", names) else names)
}

fixef.mmgibbs <- function(object, ...) coef.mmgibbs(object)

ranef.mmgibbs <- function(object, ...) {
  terms <- intersect(random_terms(object), object$solutions$term)
  setNames(lapply(terms, function(term) solutions(object, term)), terms)
}

formula.mmgibbs <- function(x, ...) x$formula

nobs.mmgibbs <- function(object, ...) object$info$data$records$used

logLik.mmgibbs <- function(object, ...) {
  value <- object$info$log_likelihood
  if (is.null(value)) refuse("logLik: expected a fit by REML (reml = TRUE), got one by method ", method_name(object))
  structure(value, df = object$info$estimated_elements, nobs = object$info$degrees_of_freedom, class = "logLik")
}

predict.mmgibbs <- function(object, newdata = NULL, genotypes = NULL, term = NULL, trait = NULL, ...) {
  if (!is.null(genotypes)) return(predict_genomic(object, genotypes))
  rows <- breeding_values(object, term, trait)
  if (is.null(newdata)) return(rows)
  ids <- as.character(if (is.data.frame(newdata)) newdata[[1]] else newdata)
  unknown <- setdiff(ids, rows$level)
  if (length(unknown)) {
    refuse("predict: the run has no level '", unknown[[1]], "'; for animals with genotypes alone give genotypes = FILE")
  }
  components <- unique(rows[c("term", "effect", "trait")])
  parts <- lapply(seq_len(nrow(components)), function(i) {
    of_component <- rows[rows$term == components$term[i] & rows$effect == components$effect[i] & rows$trait == components$trait[i], ]
    of_component[match(ids, of_component$level), , drop = FALSE]
  })
  out <- do.call(rbind, parts)
  out <- out[!is.na(out$term), , drop = FALSE]
  rownames(out) <- NULL
  out
}

predict_genomic <- function(fit, genotypes) {
  folder <- tempfile("mmgibbs-predict-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  output <- file.path(folder, "gebv.csv")
  said <- run_command(c("predict", fit$directory, genotypes_path(genotypes, file.path(folder, "genotypes.csv")), "--output", output))
  for (text in sub("^warning: ", "", grep("^warning: ", said, value = TRUE))) warning(text, call. = FALSE)
  read_table(output)
}
