# What R asks of a fitted model: print(), summary(), coef(), logLik() and their like.

print.mmgibbs <- function(x, digits = 4, ...) {
  cat(facts(x), sep = "\n")
  cat("\n")
  print(format_table(variances(x), digits), row.names = FALSE, right = TRUE)
  for (text in x$warnings) cat("\nwarning: ", text, "\n", sep = "")
  if (length(x$notes)) cat("\n", length(x$notes), if (length(x$notes) == 1) " note" else " notes", ": summary(fit) shows them\n", sep = "")
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

# Fitted values and residuals in the order of the records: a vector of one trait, else a data frame.
fitted.mmgibbs <- function(object, ...) column_of_records(object, "fitted")

residuals.mmgibbs <- function(object, ...) column_of_records(object, "residual")

column_of_records <- function(fit, column) {
  if (!file.exists(file.path(fit$directory, "fitted.csv"))) {
    key <- if (file.exists(file.path(fit$directory, "fitted.parquet"))) "output.csv = \"always\"" else "output.fitted = TRUE"
    refuse(column, ": '", fit$directory, "' has no fitted.csv; run it with settings = list(", key, ")")
  }
  rows <- read_table(file.path(fit$directory, "fitted.csv"))
  if (length(unique(rows$trait)) > 1) return(rows[c("row", "trait", column)])
  setNames(rows[[column]], rows$row)
}

# Intervals of fixed effects: mean and standard error, or standard deviation of the draws, of a normal distribution.
confint.mmgibbs <- function(object, parm, level = 0.95, ...) {
  estimates <- coef(object)
  rows <- solutions(object)
  sd <- rows$sd[!rows$term %in% random_terms(object)]
  tails <- c((1 - level) / 2, 1 - (1 - level) / 2)
  limits <- cbind(estimates + qnorm(tails[[1]]) * sd, estimates + qnorm(tails[[2]]) * sd)
  dimnames(limits) <- list(names(estimates), paste(format(100 * tails, trim = TRUE, digits = 3), "%"))
  if (missing(parm)) limits else limits[parm, , drop = FALSE]
}

# The variances as a table of LaTeX (booktabs).
toLatex.mmgibbs <- function(object, digits = 4, ...) {
  table <- format_table(variances(object), digits)
  cells <- lapply(table, function(column) gsub("([_%&#$])", "\\\\\\1", column))
  rows <- paste(do.call(paste, c(cells, list(sep = " & "))), "\\\\")
  head <- paste(paste(gsub("_", " ", names(table), fixed = TRUE), collapse = " & "), "\\\\")
  align <- paste0("l", strrep("r", ncol(table) - 1))
  lines <- c(paste0("\\begin{tabular}{", align, "}"), "\\toprule", head, "\\midrule", rows, "\\bottomrule", "\\end{tabular}")
  structure(lines, class = "Latex")
}
