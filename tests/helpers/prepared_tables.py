"""A small pedigree with records as tables, and what `prepare` made of them by name."""

PEDIGREE = """id,sire,dam
calf1,bull,cow
calf2,bull,cow2
calf3,calf1,calf2
cow,0,0
calf4,,calf2
"""  # bull and cow2 have no rows; file order differs from parents first

PHENOTYPES = """animal,herd,sex,bw,ww,w,age
calf2,10,F,30.5,200,1,0.5
calf1,9,M,31,NA,2,1.5
calf3,10,M,,210,1,2.5
calf4,2,F,NA,,1,3.5
calf3,9,F,29,190,0.5,4.5
"""


def names(prepared):
    return [t.name for t in prepared.design.terms]


def term(prepared, name):
    return prepared.design.terms[names(prepared).index(name)]


def labels(prepared, name):
    return prepared.levels[names(prepared).index(name)]


def ids_of_records(prepared, name, effect=0):
    """The id that each record meets, None where it meets none."""
    ids = labels(prepared, name).ids.to_list()
    return [ids[level] if level >= 0 else None for level in term(prepared, name).effects[effect].level]
