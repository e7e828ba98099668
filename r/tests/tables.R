# Tables, formulas and settings on their way to the program, which is not needed here.
library(mmgibbs)
inner <- function(name) getFromNamespace(name, "mmgibbs")
message_of <- function(expression) tryCatch({expression; ""}, error = conditionMessage)
expect <- function(...) stopifnot(...)
says <- function(expression, text) stopifnot(grepl(text, message_of(expression), fixed = TRUE))

# Numbers: every bit there and back, also those for which as.numeric() rounds twice.
set.seed(1)
numbers <- c(0.1, 1 / 3, pi * 10^(-30:30), rnorm(2000), 2^53 - 1, 5e-324, .Machine$double.xmax, -0.0, 100, 1e5, 123456789012)
text <- inner("number_text")(numbers)
expect(identical(inner("exact_numbers")(text), numbers))
expect(identical(inner("number_text")(c(NA, 0.1, 3, 100000)), c(NA, "0.1", "3", "100000")))
expect(all(is.na(inner("exact_numbers")(c(NA, "x")))), identical(inner("exact_numbers")(c("+5", ".5", "007")), c(5, 0.5, 7)))

# Data frames: text, factors, dates, missing values, quotation marks and letters beyond ASCII.
frame <- data.frame(
  animal = c("007", "b \"x\"", "M\u00fcller"), sex = factor(c("m", NA, "f")), y = c(0.1 + 0.2, NA, 3), n = c(1L, 2L, NA),
  ill = c(TRUE, FALSE, NA), born = as.Date(c("2020-01-31", NA, "2021-02-01")), stringsAsFactors = FALSE
)
path <- inner("write_records")(frame, tempfile(fileext = ".csv"), "data")
expect(identical(readLines(path, encoding = "UTF-8"), enc2utf8(c(
  "\"animal\",\"sex\",\"y\",\"n\",\"ill\",\"born\"", "\"007\",\"m\",0.30000000000000004,1,\"true\",\"2020-01-31\"",
  "\"b \"\"x\"\"\",NA,NA,2,\"false\",NA", "\"M\u00fcller\",\"f\",3,NA,NA,\"2021-02-01\""
))))
plain <- inner("write_records")(data.frame(y = 1:2), tempfile(fileext = ".csv"), "data")
expect(identical(readLines(plain), c("\"y\"", "1", "2")))
says(inner("write_records")(list(1), path, "data"), "data: expected a data frame or the path of a file, got list")
says(inner("write_records")(frame[0, ], path, "data"), "data: expected a data frame with rows, got none")
says(inner("write_records")(data.frame(m = I(matrix(1:4, 2))), path, "data"), "column 'm': expected one value in each row")
says(inner("write_records")(setNames(data.frame(1, 2), c("a", "a")), path, "data"), "got 'a' twice")
says(inner("table_path")("none.csv", path, "pedigree"), "pedigree: there is no file 'none.csv'")

# Tables of a run: ids stay text, empty cells are missing.
writeLines(c("term,effect,trait,level,mean,sd,known", "animal,,y,007,0.30000000000000004,,true", "x,direct,y,1,2,3,false"), path)
table <- inner("read_table")(path)
expect(identical(table$level, c("007", "1")), identical(table$effect, c("", "direct")), identical(table$mean, c(0.1 + 0.2, 2)))
expect(identical(table$sd, c(NA, 3)), identical(table$known, c(TRUE, FALSE)))

# Formulas: columns of text that look like numbers are classes, as R has them.
data <- data.frame(y = 1, herd = factor("12"), year = "2020", age = 2, sex = "m", animal = "7", "my col" = "3", check.names = FALSE)
formula_text <- inner("formula_text")
expect(formula_text(y ~ herd + year:age + sex + (1 | animal), data) == "y ~ factor(herd) + factor(year):age + sex + (1 | animal)")
expect(formula_text(y ~ herd * sex + poly(age, 2L) + (1 | herd), data) == "y ~ factor(herd) * sex + poly(age, 2) + (1 | herd)")
expect(formula_text(y ~ factor(herd) + `my col` + I(age^2), data) == "y ~ factor(herd) + factor(`my col`) + I(age^2)")
expect(formula_text(cbind(y, herd) ~ 1, data) == "cbind(y, herd) ~ 1", formula_text("y ~ herd", data) == "y ~ herd")
expect(formula_text(ill[yes] ~ (herd + year)^2 - herd:year, data) == "ill[yes] ~ (factor(herd) + factor(year))^2 - factor(herd):factor(year)")
expect(formula_text(y ~ poly(age, 2L) + `10L` + Ring.no. + (1 | `my col`), data) == "y ~ poly(age, 2) + `10L` + Ring.no. + (1 | `my col`)")
says(formula_text(3, data), "formula: expected y ~ x + (1 | animal), got numeric")

# Families and settings.
family_text <- inner("family_text")
expect(family_text("binary") == "binary", family_text(poisson()) == "poisson", family_text(binomial) == "binomial")
expect(family_text(c(ill = "binary", n = "count")) == "ill=binary,n=count")
arguments <- inner("setting_arguments")(list(
  sampler = list(chains = 2, seed = 7L, method = "reml"), variances = list(animal = matrix(c(1, 0.1, 0.1, 2), 2)), output.csv = "always"
))
expect(identical(arguments[c(1, 3, 5)], rep("--set", 3)), arguments[[2]] == "sampler={\"chains\":2,\"seed\":7,\"method\":\"reml\"}")
expect(identical(jsonlite::fromJSON(sub("variances=", "", arguments[[4]]))$animal, matrix(c(1, 0.1, 0.1, 2), 2)))
expect(arguments[[6]] == "output.csv=\"always\"")
json <- inner("json_text")
expect(json(0.1 + 0.2) == "0.30000000000000004", json(c(1, 0.5)) == "[1,0.5]", json(NULL) == "null", json("a \"b\"") == "\"a \\\"b\\\"\"")
expect(json(list("herd")) == "[\"herd\"]", json(list(prior = list(half_t = list()))) == "{\"prior\":{\"half_t\":{}}}")
expect(json(list(a = TRUE, b = list(1, "x"), c = c(g = 2))) == "{\"a\":true,\"b\":[1,\"x\"],\"c\":{\"g\":2}}", json(diag(2)) == "[[1,0],[0,1]]")
says(inner("setting_arguments")(list(3)), "settings: expected a named list")

# The program: where it is, and how it ends.
options(mmgibbs.command = "no such program")
says(run_command("--version"), "there is no such file; expected the path of the program mmgibbs")
options(mmgibbs.command = NULL)
if (.Platform$OS.type != "windows") {
  ended <- inner("start")("sh", c("-c", "echo one; echo two >&2; exit 3"))
  expect(identical(ended$lines, c("one", "two")), ended$status == 3L)
  expect(identical(inner("start")("sh", c("-c", "true")), list(lines = character(), status = 0L)))
}
says(install_mmgibbs(python = "no such python"), "was not found; expected the path of Python 3.11 or later")
if (.Platform$OS.type != "windows") says(install_mmgibbs(python = "sh"), "'sh': expected Python 3.11 or later")
error <- inner("error_of_program")(c("note: a", "warning: b", "r.csv, row 3: expected a number", ""), 2)
expect(inherits(error, "mmgibbs_error"), conditionMessage(error) == "r.csv, row 3: expected a number", error$status == 2)

# Notes of the program are messages, warnings are warnings; what progress has shown is not shown twice.
caught <- function(expression) {
  said <- character()
  withCallingHandlers(
    expression,
    message = function(m) { said <<- c(said, paste0("M ", trimws(conditionMessage(m)))); invokeRestart("muffleMessage") },
    warning = function(w) { said <<- c(said, paste0("W ", conditionMessage(w))); invokeRestart("muffleWarning") }
  )
  said
}
if (.Platform$OS.type != "windows") {
  program <- tempfile()
  writeLines(c(
    "#!/bin/sh", "echo 'note: 7 records left out' >&2", "echo 'a line'", "echo 'no gwas.html: found no matplotlib' >&2",
    "echo 'warning: few records' >&2", "exit $1"
  ), program)
  Sys.chmod(program, "755")
  options(mmgibbs.command = program)
  expect(identical(
    caught(run_command("0")), c("M note: 7 records left out", "M note: no gwas.html: found no matplotlib", "W few records")
  ))
  expect(sum(grepl("7 records left out", caught(run_command("0", progress = TRUE)))) == 1)
  expect(identical(caught(says(run_command("2"), "a line")), c("M note: 7 records left out", "M note: no gwas.html: found no matplotlib")))
  options(mmgibbs.command = NULL)
}
says(open_run(tempdir()), "is no finished run: it has no run.json")

# Messages have the rows of data frames, and of files as they are.
said <- c(
  "1. /tmp/x/data-of-R.csv row 12: found '1x'", "     row 15: found '2x'", "2. pedigree-of-R.csv row 6: a has a row already, row 5: x",
  "3. records.csv row 4: y", "     row 9: z", "data-of-R.csv: there is no column 'x'"
)
expect(identical(inner("with_rows_of_r")(said), c(
  "1. data frame 'data' row 11: found '1x'", "     row 14: found '2x'", "2. data frame 'pedigree' row 5: a has a row already, row 4: x",
  "3. records.csv row 4: y", "     row 9: z", "data frame 'data': there is no column 'x'"
)))
expect(identical(inner("with_rows_of_r")(character()), character()))
cat("tables: done\n")
