# Formulas and families as text for the program.

family_text <- function(family) {
  if (is.function(family)) family <- family()
  if (inherits(family, "family")) family <- family$family
  if (is.list(family)) family <- unlist(family)
  if (!is.character(family)) refuse("family: expected a type such as \"binary\", got ", class(family)[[1]])
  if (is.null(names(family))) return(family[[1]])
  paste(names(family), family, sep = "=", collapse = ",")
}

# The formula as text. Columns of text that look like numbers are classes, as in R, and say so.
formula_text <- function(formula, data) {
  if (is.character(formula)) return(paste(formula, collapse = " "))
  if (!inherits(formula, "formula")) refuse("formula: expected y ~ x + (1 | animal), got ", class(formula)[[1]])
  if (length(formula) == 3 && is.data.frame(data)) {
    is_class <- vapply(data, function(x) (is.factor(x) || is.character(x)) && looks_numeric(x), logical(1))
    formula[[3]] <- name_classes(formula[[3]], names(data)[is_class])
  }
  paste(trimws(deparse(plain_numbers(formula), width.cutoff = 500L)), collapse = " ")
}

# Whole numbers of R, 2L, as 2.
plain_numbers <- function(expression) {
  if (is.integer(expression)) return(as.numeric(expression))
  if (is.call(expression)) expression[-1] <- lapply(as.list(expression[-1]), plain_numbers)
  expression
}

looks_numeric <- function(x) {
  labels <- if (is.factor(x)) levels(x) else unique(x)
  labels <- labels[!is.na(labels) & !labels %in% c("", "NA")]
  length(labels) > 0 && !anyNA(suppressWarnings(as.numeric(labels)))
}

OPERATORS <- c("+", "-", "*", "/", ":", "^", "(", "%in%")

# Put factor() around the columns of classes that stand in a sum or an interaction, not behind a bar or in a call.
name_classes <- function(expression, classes) {
  if (is.name(expression)) {
    return(if (as.character(expression) %in% classes) call("factor", expression) else expression)
  }
  if (!is.call(expression) || !as.character(expression[[1]])[[1]] %in% OPERATORS) return(expression)
  expression[-1] <- lapply(as.list(expression[-1]), name_classes, classes = classes)
  expression
}
