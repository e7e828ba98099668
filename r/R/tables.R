# Tables between R and the program: csv files in which every number has all its digits.

# Columns that are names, although their values may look like numbers.
NAMES <- c(
  "parameter", "term", "effect", "trait", "level", "animal", "id", "sire", "dam", "snp", "counted", "other", "first_snp",
  "last_snp", "chromosome", "class", "category", "trial", "row", "column", "quantity", "criterion", "why_dropped", "by"
)

# Write a data frame for the program. Factors are labels, missing values NA, dates year-month-day.
write_records <- function(data, path, what) {
  if (!is.data.frame(data)) refuse(what, ": expected a data frame or the path of a file, got ", class(data)[[1]])
  if (!nrow(data)) refuse(what, ": expected a data frame with rows, got none")
  if (anyDuplicated(names(data))) {
    refuse(what, ": expected columns of different names, got '", names(data)[anyDuplicated(names(data))], "' twice")
  }
  columns <- lapply(names(data), function(name) {
    text <- as_text(data[[name]], paste0(what, ": column '", name, "'"))
    ifelse(is.na(text), "NA", if (is.numeric(data[[name]])) text else quote_cells(text))
  })
  lines <- c(paste(quote_cells(names(data)), collapse = ","), do.call(paste, c(columns, list(sep = ","))))
  file <- file(path, open = "wb")
  on.exit(close(file))
  writeLines(enc2utf8(lines), file, sep = "\n", useBytes = TRUE)
  path
}

quote_cells <- function(text) paste0("\"", gsub("\"", "\"\"", enc2utf8(text), fixed = TRUE), "\"")

as_text <- function(x, what) {
  if (is.list(x) || !is.null(dim(x))) refuse(what, ": expected one value in each row, got a ", class(x)[[1]])
  if (is.factor(x) || is.character(x)) return(as.character(x))
  if (inherits(x, "Date")) return(format(x, "%Y-%m-%d"))
  if (inherits(x, "POSIXt")) return(format(x, "%Y-%m-%d %H:%M:%S"))
  if (is.logical(x)) return(ifelse(is.na(x), NA_character_, ifelse(x, "true", "false")))
  if (is.integer(x) || inherits(x, "integer64")) return(as.character(x))
  if (is.numeric(x)) return(number_text(as.numeric(x)))
  refuse(what, ": expected numbers, text, factors or dates, got ", class(x)[[1]])
}

# Numbers with as many digits as give the same number again: 15, or 17.
number_text <- function(x) {
  text <- sprintf("%.15g", x)
  longer <- is.finite(x) & suppressWarnings(exact_numbers(text) != x)
  text[which(longer)] <- sprintf("%.17g", x[which(longer)])
  text[is.na(x)] <- NA_character_
  text
}

# Text to the nearest numbers. as.numeric() may miss the last bit, the parser of JSON does not.
exact_numbers <- function(text) {
  value <- rep(NA_real_, length(text))
  plain <- !is.na(text) & grepl("^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?$", text)
  if (any(plain)) {
    # a point keeps whole numbers from being read as integers
    json <- paste0("[0.5,", paste(text[plain], collapse = ","), "]")
    value[plain] <- as.numeric(jsonlite::fromJSON(json, bigint_as_char = FALSE))[-1]
  }
  other <- !is.na(text) & !plain
  value[other] <- suppressWarnings(as.numeric(text[other]))
  value
}

# Read a csv file of the program: names stay text, also where they are numbers.
read_table <- function(path) {
  text <- read.csv(
    path, colClasses = "character", na.strings = "", check.names = FALSE, encoding = "UTF-8", stringsAsFactors = FALSE
  )
  text[] <- lapply(names(text), function(name) read_column(text[[name]], name))
  text
}

read_column <- function(cells, name) {
  if (name %in% NAMES) {
    if (name == "effect") cells[is.na(cells)] <- ""
    return(cells)
  }
  known <- cells[!is.na(cells)]
  if (!length(known)) return(as.numeric(cells))
  if (all(known %in% c("true", "false"))) return(cells == "true")
  if (anyNA(suppressWarnings(as.numeric(known)))) return(cells)
  exact_numbers(cells)
}

# The file that a data frame is written to, by the argument that it was given as.
frame_file <- function(argument) paste0(argument, "-of-R.csv")

# Messages about such a file with the rows of the data frame: the header is a row of the file, not of the frame.
with_rows_of_r <- function(lines) {
  of_file <- "(data|pedigree|genotypes)-of-R[.]csv"
  is_of_frame <- FALSE
  for (i in seq_along(lines)) {
    is_of_frame <- grepl(of_file, lines[[i]]) || (is_of_frame && grepl("^ ", lines[[i]]))
    if (!is_of_frame) next
    places <- gregexpr("\\brow [0-9]+", lines[[i]])
    rows <- regmatches(lines[[i]], places)[[1]]
    regmatches(lines[[i]], places) <- list(paste("row", as.numeric(sub("row ", "", rows)) - 1)[seq_along(rows)])
  }
  gsub(paste0("[^ '\"]*", of_file), "data frame '\\1'", lines)
}
