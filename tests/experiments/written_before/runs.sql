BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('v3.2.0.a');
CREATE TABLE studies (
	study_id INTEGER NOT NULL, 
	study_name VARCHAR(512) NOT NULL, 
	PRIMARY KEY (study_id)
);
INSERT INTO "studies" VALUES(1,'written before');
CREATE TABLE study_directions (
	study_direction_id INTEGER NOT NULL, 
	direction VARCHAR(8) NOT NULL, 
	study_id INTEGER NOT NULL, 
	objective INTEGER NOT NULL, 
	PRIMARY KEY (study_direction_id), 
	UNIQUE (study_id, objective), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "study_directions" VALUES(1,'MAXIMIZE',1,0);
CREATE TABLE study_system_attributes (
	study_system_attribute_id INTEGER NOT NULL, 
	study_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (study_system_attribute_id), 
	UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
CREATE TABLE study_user_attributes (
	study_user_attribute_id INTEGER NOT NULL, 
	study_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (study_user_attribute_id), 
	UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
CREATE TABLE trial_heartbeats (
	trial_heartbeat_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	heartbeat DATETIME NOT NULL, 
	PRIMARY KEY (trial_heartbeat_id), 
	UNIQUE (trial_id), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_intermediate_values (
	trial_intermediate_value_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	step INTEGER NOT NULL, 
	intermediate_value FLOAT, 
	intermediate_value_type VARCHAR(7) NOT NULL, 
	PRIMARY KEY (trial_intermediate_value_id), 
	UNIQUE (trial_id, step), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_params (
	param_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	param_name VARCHAR(512), 
	param_value FLOAT, 
	distribution_json TEXT, 
	PRIMARY KEY (param_id), 
	UNIQUE (trial_id, param_name), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_system_attributes (
	trial_system_attribute_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (trial_system_attribute_id), 
	UNIQUE (trial_id, "key"), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_system_attributes" VALUES(1,1,'artifacts:173f3bda-6d57-422e-85bb-07ce0f6b67be','"{\"artifact_id\": \"173f3bda-6d57-422e-85bb-07ce0f6b67be\", \"filename\": \"curves.json\", \"mimetype\": \"application/json\", \"encoding\": null}"');
INSERT INTO "trial_system_attributes" VALUES(2,2,'artifacts:85fa3df9-814e-4fb2-b18b-a8f1ea92336f','"{\"artifact_id\": \"85fa3df9-814e-4fb2-b18b-a8f1ea92336f\", \"filename\": \"curves.json\", \"mimetype\": \"application/json\", \"encoding\": null}"');
INSERT INTO "trial_system_attributes" VALUES(3,3,'artifacts:303e275a-d6c5-44f3-9e98-00eb6d518f8d','"{\"artifact_id\": \"303e275a-d6c5-44f3-9e98-00eb6d518f8d\", \"filename\": \"curves.json\", \"mimetype\": \"application/json\", \"encoding\": null}"');
INSERT INTO "trial_system_attributes" VALUES(4,4,'artifacts:35bdb944-d308-4f9a-a47a-647a1a4acb3f','"{\"artifact_id\": \"35bdb944-d308-4f9a-a47a-647a1a4acb3f\", \"filename\": \"curves.json\", \"mimetype\": \"application/json\", \"encoding\": null}"');
CREATE TABLE trial_user_attributes (
	trial_user_attribute_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (trial_user_attribute_id), 
	UNIQUE (trial_id, "key"), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_user_attributes" VALUES(1,1,'cell','{"model": "gcn", "data": "csbm:nodes=40,features=6,classes=2", "depth": 2, "name": "Basic GCN", "width": 4, "dropout": 0.0, "entropy": null, "options": null, "protocol": "paper", "changes": {"epochs": 3}, "normalize_features": false, "seed": 0}');
INSERT INTO "trial_user_attributes" VALUES(2,1,'attempt','1');
INSERT INTO "trial_user_attributes" VALUES(3,2,'cell','{"model": "entropic-gcn", "data": "csbm:nodes=40,features=6,classes=2", "depth": 2, "name": "Entropic GCN", "width": 4, "dropout": 0.0, "entropy": {"weight": {"schedule": "gain", "of": 0.3}, "temperature": 1, "normalization": "sym", "scale_free": true}, "options": null, "protocol": "paper", "changes": {"epochs": 3}, "normalize_features": false, "seed": 0}');
INSERT INTO "trial_user_attributes" VALUES(4,2,'attempt','1');
INSERT INTO "trial_user_attributes" VALUES(5,3,'cell','{"model": "pairnorm", "data": "csbm:nodes=40,features=6,classes=2", "depth": 2, "name": "PairNorm", "width": 4, "dropout": 0.0, "entropy": null, "options": {"scale": 3.0}, "protocol": "paper", "changes": {"epochs": 3}, "normalize_features": false, "seed": 0}');
INSERT INTO "trial_user_attributes" VALUES(6,3,'attempt','1');
INSERT INTO "trial_user_attributes" VALUES(7,4,'cell','{"model": "gcnii", "data": "csbm:nodes=40,features=6,classes=2", "depth": 2, "name": "GCNII", "width": 4, "dropout": 0.5, "entropy": null, "options": null, "protocol": "paper", "changes": {"epochs": 3}, "normalize_features": false, "seed": 0}');
INSERT INTO "trial_user_attributes" VALUES(8,4,'attempt','1');
INSERT INTO "trial_user_attributes" VALUES(9,1,'worker','"host:3009"');
INSERT INTO "trial_user_attributes" VALUES(10,1,'best_val_accuracy','0.2777777910232544');
INSERT INTO "trial_user_attributes" VALUES(11,1,'test_accuracy','0.3499999940395355');
INSERT INTO "trial_user_attributes" VALUES(12,1,'val_loss','0.712308406829834');
INSERT INTO "trial_user_attributes" VALUES(13,1,'epochs','3');
INSERT INTO "trial_user_attributes" VALUES(14,1,'energy','[0.062261027674192615, 0.013571206044537635, 0.0009761830014848215]');
INSERT INTO "trial_user_attributes" VALUES(15,1,'final_energy','[0.062269624571018124, 0.013508732648642335, 0.0009189239302291711]');
INSERT INTO "trial_user_attributes" VALUES(16,1,'seconds','12.324832145000073');
INSERT INTO "trial_user_attributes" VALUES(17,1,'threads','2');
INSERT INTO "trial_user_attributes" VALUES(18,2,'worker','"host:3009"');
INSERT INTO "trial_user_attributes" VALUES(19,2,'best_val_accuracy','0.2777777910232544');
INSERT INTO "trial_user_attributes" VALUES(20,2,'test_accuracy','0.4000000059604645');
INSERT INTO "trial_user_attributes" VALUES(21,2,'val_loss','0.713761568069458');
INSERT INTO "trial_user_attributes" VALUES(22,2,'epochs','3');
INSERT INTO "trial_user_attributes" VALUES(23,2,'energy','[0.0766626055285887, 0.018854105132592024, 0.001252872392842784]');
INSERT INTO "trial_user_attributes" VALUES(24,2,'final_energy','[0.07670020856871101, 0.018779206756125922, 0.0011918600266125775]');
INSERT INTO "trial_user_attributes" VALUES(25,2,'seconds','0.02175906100001157');
INSERT INTO "trial_user_attributes" VALUES(26,2,'threads','2');
INSERT INTO "trial_user_attributes" VALUES(27,3,'worker','"host:3009"');
INSERT INTO "trial_user_attributes" VALUES(28,3,'best_val_accuracy','0.3333333432674408');
INSERT INTO "trial_user_attributes" VALUES(29,3,'test_accuracy','0.30000001192092896');
INSERT INTO "trial_user_attributes" VALUES(30,3,'val_loss','1.2414292097091675');
INSERT INTO "trial_user_attributes" VALUES(31,3,'epochs','3');
INSERT INTO "trial_user_attributes" VALUES(32,3,'energy','[0.06226633867042758, 0.5297743330648694]');
INSERT INTO "trial_user_attributes" VALUES(33,3,'final_energy','[0.06228015162971608, 0.5267251647917636]');
INSERT INTO "trial_user_attributes" VALUES(34,3,'seconds','0.017033613999956287');
INSERT INTO "trial_user_attributes" VALUES(35,3,'threads','2');
INSERT INTO "trial_user_attributes" VALUES(36,4,'worker','"host:3009"');
INSERT INTO "trial_user_attributes" VALUES(37,4,'best_val_accuracy','0.5');
INSERT INTO "trial_user_attributes" VALUES(38,4,'test_accuracy','0.5');
INSERT INTO "trial_user_attributes" VALUES(39,4,'val_loss','0.6978429555892944');
INSERT INTO "trial_user_attributes" VALUES(40,4,'epochs','3');
INSERT INTO "trial_user_attributes" VALUES(41,4,'energy','[0.006034111103865196, 0.0029231091923473036]');
INSERT INTO "trial_user_attributes" VALUES(42,4,'final_energy','[0.006010991437143838, 0.0029085299294009026]');
INSERT INTO "trial_user_attributes" VALUES(43,4,'seconds','0.8097961679999344');
INSERT INTO "trial_user_attributes" VALUES(44,4,'threads','2');
CREATE TABLE trial_values (
	trial_value_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	objective INTEGER NOT NULL, 
	value FLOAT, 
	value_type VARCHAR(7) NOT NULL, 
	PRIMARY KEY (trial_value_id), 
	UNIQUE (trial_id, objective), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_values" VALUES(1,1,0,2.77777791023254394531e-01,'FINITE');
INSERT INTO "trial_values" VALUES(2,2,0,2.77777791023254394531e-01,'FINITE');
INSERT INTO "trial_values" VALUES(3,3,0,3.33333343267440795898e-01,'FINITE');
INSERT INTO "trial_values" VALUES(4,4,0,0.5,'FINITE');
CREATE TABLE trials (
	trial_id INTEGER NOT NULL, 
	number INTEGER, 
	study_id INTEGER, 
	state VARCHAR(8) NOT NULL, 
	datetime_start DATETIME, 
	datetime_complete DATETIME, 
	PRIMARY KEY (trial_id), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "trials" VALUES(1,0,1,'COMPLETE','2026-11-17 18:43:40.330694','2026-11-17 18:43:52.680049');
INSERT INTO "trials" VALUES(2,1,1,'COMPLETE','2026-11-17 18:43:52.687786','2026-11-17 18:43:52.727281');
INSERT INTO "trials" VALUES(3,2,1,'COMPLETE','2026-11-17 18:43:52.734993','2026-11-17 18:43:52.770479');
INSERT INTO "trials" VALUES(4,3,1,'COMPLETE','2026-11-17 18:43:52.776812','2026-11-17 18:43:53.604330');
CREATE TABLE version_info (
	version_info_id INTEGER NOT NULL, 
	schema_version INTEGER, 
	library_version VARCHAR(256), 
	PRIMARY KEY (version_info_id), 
	CHECK (version_info_id=1)
);
INSERT INTO "version_info" VALUES(1,12,'5.0.0');
CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name);
CREATE INDEX ix_trials_study_id ON trials (study_id);
COMMIT;
